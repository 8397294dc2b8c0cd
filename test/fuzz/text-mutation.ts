/** Seeded mutations of texts: by word, by line, by repetition. */
import { pickOf, type Random } from './mutation.ts';

/** What separates, quotes and escapes in the grammars at hand; and characters that look like another or like nothing. */
const WORDS = [' ', '\t', '\n', '\r\n', '"', "'", '\\', ',', ';', ':', '=', '.', '/', '-----', '{', '}', '[', ']', '#']
  .concat([
    '\0',
    '\u00a0',
    '\u2028',
    '\ufeff',
    '\u{1f600}',
    '\ud800',
    'é',
    'ﬀ',
    '%00',
    '%2e',
    '../',
    '&',
    '+',
    '<',
    '*',
  ])
  .concat(['0', '-1', '1e999', '9007199254740993', '99999999999999999999', 'null', 'true', '__proto__', 'constructor']);
const MANY = [2, 10, 100, 1000, 20_000];
const MAX_GROWTH = 60_000;

/**
 * One edit: a word put in or in place of another, lines removed, repeated or swapped, a piece of another input, or a
 * piece repeated up to tens of thousands of times. The octets that are no UTF-8 survive.
 *
 * @param words of the parser's own
 */
export function mutateText(bytes: Buffer, donor: Buffer, words: readonly string[], next: Random): Buffer {
  const text = bytes.toString('latin1');
  const other = donor.toString('latin1');
  const at = next(text.length + 1);
  const end = Math.min(text.length, at + 1 + next(next(4) === 0 ? 400 : 12));
  const insert = (piece: string, from = at): Buffer =>
    Buffer.from(text.slice(0, at) + piece + text.slice(from), 'latin1');
  const word = (): string => Buffer.from(pickOf([...words, ...WORDS], next) ?? '', 'utf8').toString('latin1');
  switch (next(8)) {
    case 0:
      return insert(word());
    case 1:
      return insert(word(), end);
    case 2: {
      const from = next(other.length + 1);
      return insert(other.slice(from, from + next(200)), next(2) === 0 ? at : end);
    }
    case 3: {
      const piece = next(2) === 0 ? word() : text.slice(at, end);
      const times = Math.min(pickOf(MANY, next) ?? 2, Math.ceil(MAX_GROWTH / Math.max(1, piece.length)));
      return insert(piece.repeat(times));
    }
    case 4:
      return insert('', end);
    default:
      return lines(text, other, next);
  }
}

function lines(text: string, other: string, next: Random): Buffer {
  const all = text.split('\n');
  const at = next(all.length);
  const to = next(all.length);
  const chosen = all[at] ?? '';
  switch (next(4)) {
    case 0:
      all.splice(at, 1);
      break;
    case 1:
      all.splice(to, 0, chosen);
      break;
    case 2:
      all.splice(at, 1);
      all.splice(to, 0, chosen);
      break;
    default:
      all.splice(to, 0, pickOf(other.split('\n'), next) ?? '');
  }
  return Buffer.from(all.join('\n'), 'latin1');
}
