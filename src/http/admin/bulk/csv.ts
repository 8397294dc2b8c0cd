/**
 * RFC 4180: quotes where required, CRLF between records (LF alone is accepted), one header line. Semicolons,
 * which spreadsheets write in many languages, are read in place of commas.
 */

interface CsvRecord {
  readonly fields: readonly string[];
  /** Line of the input at which it begins, counted from 1. */
  readonly line: number;
  /** Why the record is malformed. */
  readonly problem?: string;
}

/** Parses record by record; skips those without any value, and white space around values without quotes. */
export function* parseCsv(text: string): Generator<CsvRecord> {
  // Spreadsheets write a byte order mark.
  let at = text.startsWith('\ufeff') ? 1 : 0;
  const header = text.slice(at, endOfLine(text, at));
  const separator = header.includes(';') && !header.includes(',') ? ';' : ',';
  for (let line = 1; at < text.length;) {
    const { end, ...record } = readRecord(text, at, separator);
    if (record.problem !== undefined || record.fields.some((field) => field !== '')) yield { ...record, line };
    for (; at < end; at += 1) if (text[at] === '\n') line += 1;
  }
}

interface Read extends Omit<CsvRecord, 'line'> {
  readonly end: number;
}

type Separator = ',' | ';';

function readRecord(text: string, start: number, separator: Separator): Read {
  const fields: string[] = [];
  let at = start;
  for (;;) {
    const begin = afterBlanks(text, at);
    const field = text[begin] === '"' ? readQuoted(text, begin, separator) : readPlain(text, at, separator);
    fields.push(field.value);
    at = field.end;
    if (field.problem !== undefined) return { fields, problem: field.problem, end: endOfLine(text, at) };
    if (text[at] !== separator) return { fields, end: endOfLine(text, at) };
    at += 1;
  }
}

interface Field {
  readonly value: string;
  readonly end: number;
  readonly problem?: string;
}

function readPlain(text: string, start: number, separator: Separator): Field {
  let end = start;
  while (end < text.length && text[end] !== separator && !isLineEnd(text, end)) end += 1;
  const value = text.slice(start, end).trim();
  return value.includes('"') ? { value, end, problem: 'a quote in an unquoted field' } : { value, end };
}

function readQuoted(text: string, start: number, separator: Separator): Field {
  let value = '';
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return { value, end: text.length, problem: 'an unclosed quote' };
    value += text.slice(at, quote);
    if (text[quote + 1] !== '"') {
      const end = afterBlanks(text, quote + 1);
      if (end === text.length || text[end] === separator || isLineEnd(text, end)) return { value, end };
      return { value, end, problem: 'text after a quoted field' };
    }
    value += '"';
    at = quote + 2;
  }
}

/** The offset after blanks, which are not part of a value. */
function afterBlanks(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ' || text[at] === '\t') at += 1;
  return at;
}

const isLineEnd = (text: string, at: number): boolean =>
  text[at] === '\n' || (text[at] === '\r' && (text[at + 1] === '\n' || at + 1 === text.length));

/** The offset after the current line. */
function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end + 1;
}

export function csvLine(fields: readonly string[]): string {
  return `${fields.map((field) => (/[",\r\n]|^\s|\s$/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')}\r\n`;
}
