/** Sends a file of rows in several calls; prints the result of each row, in order, in the file's format. */
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { describe } from '../../../errors.ts';
import { csvLine, parseCsv } from '../../../http/admin/bulk/csv.ts';
import { EXIT, UsageError, withOption } from '../command.ts';
import { duration, progress, type Progress } from '../progress.ts';
import { printable } from '../text-table.ts';
import type { Session } from './admin-command.ts';
import type { Query } from './client.ts';
import { asRecord, textAt } from './json.ts';

interface RowsOrder {
  readonly path: string;
  readonly query?: Query;
  /** `-`: standard input. */
  readonly file: string;
  /** Output file; undefined: standard output. */
  readonly out: string | undefined;
  /** Checks every row, changes nothing. */
  readonly dryRun: boolean;
  /** Runs a dry run first to estimate the duration. */
  readonly estimates?: boolean;
  /** For progress and summary. */
  readonly what: string;
  readonly done: string;
}

/** Per call; slightly below the limits, to leave room for headers. */
const MOST_ROWS = 10_000;
const MOST_BYTES = 15 << 20;
/** Failures that are printed individually. */
const TOLD = 10;

interface Part {
  readonly text: string;
  readonly rows: number;
}

/** @returns 1 if a row failed. @throws UsageError; CommandError: earlier calls remain in effect */
export async function sendRows(given: RowsOrder, session: Session): Promise<number> {
  const text = await readRows(given.file);
  const isCsv = hasCsv(given.file, text);
  const parts = isCsv ? csvParts(text) : ndjsonParts(text);
  const total = parts.reduce((sum, { rows }) => sum + rows, 0);
  const target = given.out === undefined ? undefined : await withOption('--out', open(given.out, 'wx', 0o600));
  const order = given.dryRun ? { ...given, query: { ...given.query, ...DRY }, done: 'rows are valid' } : given;
  if (order.estimates === true && !order.dryRun) await estimate(order, { parts, total, isCsv }, session);
  const shown = progress(session, { what: order.what, unit: 'rows', total });
  const answers = new Answers(isCsv, session, target, shown);
  try {
    for (const part of parts) {
      const answer = await send(order, part, isCsv, session);
      await answers.take(session.client.chunks(answer), part.rows);
    }
  } finally {
    shown.end();
    await target?.close();
  }
  const { failures } = answers;
  for (const { row, code, message } of failures.slice(0, TOLD))
    session.err(`row ${row}: ${printable(message)} (${printable(code)})\n`);
  if (failures.length > TOLD) session.err(`… and ${failures.length - TOLD} more\n`);
  const place = order.out === undefined ? '' : `; the results are in ${order.out}`;
  session.err(`${total - failures.length} of ${total} ${order.done}${place}\n`);
  return failures.length === 0 ? EXIT.ok : EXIT.failed;
}

const DRY = { dry_run: 'true' } as const;

function send({ path, query = {} }: RowsOrder, { text }: Part, isCsv: boolean, { client }: Session) {
  const rows = { type: isCsv ? 'text/csv' : 'application/x-ndjson', text };
  return client.open('POST', path, { query, rows, accept: rows.type });
}

/** Estimates the total time from the server's measurement. */
async function estimate(
  order: RowsOrder,
  { parts, total, isCsv }: { readonly parts: readonly Part[]; readonly total: number; readonly isCsv: boolean },
  session: Session,
): Promise<void> {
  let seconds = 0;
  for (const part of parts) {
    const answer = await send({ ...order, query: { ...order.query, ...DRY } }, part, isCsv, session);
    seconds += Number(answer.headers['estimated-seconds'] ?? 0);
    answer.resume();
  }
  session.err(`${order.what}: ${total} rows, about ${duration(seconds * 1000)}\n`);
}

interface RowFailure {
  /** Line of the file, from 1. */
  readonly row: string;
  readonly code: string;
  readonly message: string;
}

/** Combines the responses of all calls. */
class Answers {
  readonly failures: RowFailure[] = [];
  readonly #isCsv: boolean;
  readonly #session: Session;
  readonly #target: FileHandle | undefined;
  readonly #shown: Progress;
  /** Rows of earlier calls. */
  #before = 0;

  constructor(isCsv: boolean, session: Session, target: FileHandle | undefined, shown: Progress) {
    this.#isCsv = isCsv;
    this.#session = session;
    this.#target = target;
    this.#shown = shown;
  }

  /** Keeps what arrived even if the rest fails: a token is shown only once. */
  async take(chunks: AsyncIterable<string>, rows: number): Promise<void> {
    let text = '';
    let lines = this.#isCsv ? -1 : 0;
    try {
      for await (const chunk of chunks) {
        text += chunk;
        lines += chunk.split('\n').length - 1;
        this.#shown.update(this.#before + Math.max(0, Math.min(rows, lines)));
      }
    } finally {
      const results = this.#isCsv ? this.#readCsv(text) : this.#readNdjson(text);
      this.#before += rows;
      if (this.#target === undefined) {
        this.#session.out(results);
        await this.#session.drained?.();
      } else await this.#target.appendFile(results);
    }
  }

  #readCsv(text: string): string {
    const [header, ...records] = [...parseCsv(text)].map(({ fields }) => fields);
    if (header === undefined) return '';
    const [row, code, message] = ['row', 'code', 'message'].map((name) => header.indexOf(name));
    for (const fields of records) {
      const failed = fields[code ?? -1] ?? '';
      if (failed !== '')
        this.failures.push({ row: fields[row ?? -1] ?? '', code: failed, message: fields[message ?? -1] ?? '' });
    }
    return [...(this.#before === 0 ? [header] : []), ...records].map((fields) => csvLine(fields)).join('');
  }

  #readNdjson(text: string): string {
    const lines = text.split('\n').filter((line) => line !== '');
    for (const record of lines.map(asRecord))
      if (record?.['row'] !== undefined && record['code'] !== undefined) {
        const [row, code, message] = [textAt(record, 'row'), textAt(record, 'code'), textAt(record, 'message')];
        this.failures.push({ row, code, message });
      }
    return lines.map((line) => `${line}\n`).join('');
  }
}

async function readRows(file: string): Promise<string> {
  try {
    const bytes = file === '-' ? await buffer(process.stdin) : await readFile(file);
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8' : describe(error);
    throw new UsageError(`FILE ${file} cannot be read: ${reason}`);
  }
}

/** By file name, otherwise by the first character: NDJSON starts with a brace. */
function hasCsv(file: string, text: string): boolean {
  const [, ending] = /\.(csv|ndjson|jsonl)$/i.exec(file) ?? [];
  return ending === undefined ? !/^\s*\{/.test(text) : ending.toLowerCase() === 'csv';
}

/** @throws UsageError: checks the whole file before the first part is sent */
function csvParts(text: string): Part[] {
  const [header, ...records] = parseCsv(text);
  if (header === undefined) throw new UsageError('FILE has no header line');
  if (header.problem !== undefined) throw new UsageError(`FILE: the header line has ${header.problem}`);
  const rows = records.map(({ fields, line, problem }) => {
    if (problem !== undefined) throw new UsageError(`FILE: row ${line} has ${problem}`);
    return { text: csvLine(fields), line };
  });
  return together(rows, csvLine(header.fields));
}

const ndjsonParts = (text: string): Part[] =>
  together(
    text.split('\n').flatMap((line, n) => (line.trim() === '' ? [] : [{ text: `${line}\n`, line: n + 1 }])),
    '',
  );

const linesIn = (text: string): number => text.split('\n').length - 1;

/** Groups as many rows as one call may have. Empty lines keep each row at its line, which the results name. */
function together(rows: readonly { readonly text: string; readonly line: number }[], head: string): Part[] {
  const parts: { texts: string[]; bytes: number; next: number; rows: number }[] = [];
  for (const { text, line } of rows) {
    const bytes = Buffer.byteLength(text);
    let part = parts.at(-1);
    if (part === undefined || part.rows >= MOST_ROWS || part.bytes + bytes > MOST_BYTES)
      parts.push((part = { texts: [head], bytes: line, next: 1 + linesIn(head), rows: 0 }));
    const skipped = Math.max(0, line - part.next);
    part.texts.push('\n'.repeat(skipped), text);
    part.bytes += bytes;
    part.next += skipped + linesIn(text);
    part.rows += 1;
  }
  if (parts.length === 0) throw new UsageError('FILE has no rows');
  return parts.map((part) => ({ text: part.texts.join(''), rows: part.rows }));
}
