/** PEM (RFC 7468). */
import { InputError } from '../input-error.ts';
import { children, parseDer, Tag, unlessMalformed } from './der.ts';

interface PemBlock {
  /** E.g. `CERTIFICATE`. */
  readonly label: string;
  readonly der: Buffer;
}

/** Both lines of a block, also one that is cut. */
const LINE = /-----(BEGIN|END)\b(?: ([^\r\n-]+)-----)?|-----(?:B|BE|BEG|BEGI)$/g;
/** RFC 1421 §4.6, before the content of an encrypted key. */
const HEADERS = /^(?:\s*[\w-]+:.*\n(?:[ \t]+\S.*\n)*)+/;

/**
 * All blocks of a PEM text, in order; other text is ignored. Indentation and the kind of line ends do not matter.
 * @throws InputError for a block that is cut or not base64: a half-written file must not pass for a whole one
 */
export function parsePem(text: string): PemBlock[] {
  const whole = text.trimEnd();
  const lines = [...whole.matchAll(LINE)];
  const blocks: PemBlock[] = [];
  for (let i = 0; i < lines.length; i += 2) {
    const [begin, end] = [lines[i], lines[i + 1]];
    const label = begin?.[2];
    const number = `PEM block ${i / 2 + 1}`;
    if (begin?.[1] === 'END') throw new InputError(`${number} ends without a BEGIN line`);
    if (begin === undefined || label === undefined) throw new InputError(`${number} has an incomplete BEGIN line`);
    if (end === undefined || end[1] !== 'END') throw new InputError(`${number} (${label}) begins and does not end`);
    if (end[2] !== label) throw new InputError(`${number} BEGIN ${label} ends as ${end[2] ?? 'an incomplete line'}`);
    const body = whole.slice(begin.index + begin[0].length, end.index);
    const base64 = body.replace(/\r\n?/g, '\n').replace(HEADERS, '').replace(/\s+/g, '');
    if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64))
      throw new InputError(`${number} (${label}) is not base64`);
    blocks.push({ label, der: Buffer.from(base64, 'base64') });
  }
  return blocks;
}

/** A PEM text as OpenSSL reads it: without a byte order mark, indentation and CR line ends. */
export const tidyPem = (text: string): string =>
  text
    .replace(/^(?:\ufeff|\xef\xbb\xbf)/, '')
    .replace(/\r\n?/g, '\n')
    .replace(/^[ \t]+|[ \t]+$/gm, '');

/** Text of a file in PEM, or DER of a certificate, request or PKCS #7. PKCS #12 and private keys begin with a version. */
export const pemText = (file: Buffer, label = 'CERTIFICATE'): string =>
  file[0] === Tag.SEQUENCE && unlessMalformed(() => children(parseDer(file).value)[0]?.tag !== Tag.INTEGER, false)
    ? encodePem(label, file)
    : file.toString('latin1');

/** One PEM block, 64 columns, with a final newline. */
export function encodePem(label: string, der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}
