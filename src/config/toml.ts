/** Parses TOML. A syntax error names the key, and says what to write instead. */
import { parse, TomlError } from 'smol-toml';
import type { Problem, Table } from './problem.ts';

/** Parses a document; integers become bigint. Returns a problem for invalid TOML, which shows no value but a word. */
export function parseToml(text: string): { readonly document: Table } | { readonly problem: Problem } {
  try {
    return { document: parse(text, { integersAsBigInt: true, unsafeKeyBehaviour: 'throw', maxDepth: 32 }) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // Only the first line: the message continues with lines of the file, which may contain a secret.
    const [first = ''] = error.message.split('\n');
    const found = first.replace('Invalid TOML document: ', '');
    const lines = text.split('\n').slice(0, error.line);
    const line = lines.at(-1)?.trim() ?? '';
    const [, name = '', value = ''] = /^([\w.-]+)\s*=\s*(.*)$/.exec(line) ?? [];
    const [reason, allowed] = explain(found, line, name, value) ?? [found, 'a TOML document'];
    const key = name === '' ? '' : [...sectionOf(lines), name].join('.');
    return { problem: { line: error.line, key, message: `${reason} at column ${error.column} (${allowed})` } };
  }
}

const HEADER = /^\s*\[\[?\s*([\w.-]+)\s*\]/;
const TRUTH = /^(?:yes|no|on|off|true|false)\b/i;

function sectionOf(lines: readonly string[]): readonly string[] {
  const section = lines.findLast((line) => HEADER.test(line));
  return section === undefined ? [] : [HEADER.exec(section)?.[1] ?? ''];
}

/** What is wrong, and what is allowed; undefined: the parser says it best. */
function explain(found: string, line: string, name: string, value: string): readonly [string, string] | undefined {
  const table = HEADER.exec(line)?.[1];
  if (found.startsWith('trying to redefine'))
    return table === undefined
      ? ['the key occurs twice', 'each key once in a table']
      : [`the table [${table}] occurs twice`, `one table [${table}], or [[${table}]] for each item of a list`];
  if (found.startsWith('illegal character in key'))
    return line.startsWith('[')
      ? ['the name of a table has no closing bracket', '[NAME]']
      : ['this line is not KEY = VALUE', 'KEY = VALUE, or a comment that begins with #'];
  if (name === '') return undefined;
  const [word] = TRUTH.exec(value) ?? [];
  if (word !== undefined && found === 'invalid value') return [`${word} is not a value of TOML`, 'true or false'];
  if (value === '') return ['the value is missing', 'KEY = VALUE'];
  if (/^[“”„‘’«]/.test(value)) return ['the quotation marks are typographic', 'straight ones: "text"'];
  if (found === 'invalid value')
    return ['the text has no quotation marks', '"text"; true, false and numbers have none'];
  if (/escape/.test(found)) return [`${found}: a backslash begins an escape in "text"`, String.raw`\\, or 'text'`];
  if (found.startsWith('control characters')) return ['the text has no closing quotation mark', '"text" in one line'];
  if (/numeric|number/.test(found)) return ['the value is not a number', 'digits without a unit, or "text"'];
  if (found.includes('followed by an end-of-line'))
    return ['the value is followed by something else', 'one value in a line; a comment begins with #'];
  return undefined;
}
