/** The spelling of prose: American English, and the terms of the project in scripts/dictionary.txt. */
import dictionary from 'dictionary-en';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import nspell from 'nspell';

/** What is not prose: code, placeholders, link targets, URLs, and tags of doc comments with their names. */
const CODE =
  /```[^]*?```|`[^`]*`|\$\{[^}]*\}|\]\([^)\n]*\)|https?:\S+|\{@\w+ [^}]*\}|@param \S+|@throws \S+|"[^"\n]*"|'[^'\n ]*'/gu;
/** Between words. What contains another character, such as a dot or a digit, is a name and no word. */
const SEPARATOR = /[\s"()[\]{},;:!?*|<>=…“”/]+/u;
const WORD = /^\p{Lu}?\p{Ll}{4,}$/u;

/** The words of a text with their offsets. */
export function* wordsOf(text: string): Generator<{ readonly word: string; readonly offset: number }> {
  const prose = text.replace(CODE, (code) => ' '.repeat(code.length));
  let offset = 0;
  for (const part of prose.split(SEPARATOR)) {
    offset = prose.indexOf(part, offset);
    const compound = part
      .replace(/^['‘’.]+|['‘’.]+$/gu, '')
      .replace(/['’]s$/u, '')
      .split('-');
    if (compound.every((word) => /^\p{L}+$/u.test(word)))
      for (const word of compound) if (WORD.test(word)) yield { word, offset };
    offset += part.length;
  }
}

/** Whether a word is correct. Each word is looked up once. */
export function speller(root: string): (word: string) => boolean {
  const spell = nspell(dictionary);
  const own = new Set(readFileSync(join(root, 'scripts/dictionary.txt'), 'utf8').split('\n'));
  const known = new Map<string, boolean>();
  return (word) => {
    let correct = known.get(word);
    if (correct === undefined) {
      correct = own.has(word) || own.has(word.toLowerCase()) || spell.correct(word);
      known.set(word, correct);
    }
    return correct;
  };
}
