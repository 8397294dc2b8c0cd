/**
 * Bulk calls in NDJSON or CSV, in both directions: all rows are counted before the first is applied; each row gets its
 * result in order while later ones are processed.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, errorWith, EstuaryError, type ErrorCode } from '../../../errors.ts';
import type { AdminApp } from '../dependencies.ts';
import { cellsOf, checkHeader, recordOf, type Columns } from './columns.ts';
import { flag } from '../schemas.ts';
import { csvLine, parseCsv } from './csv.ts';

/** The parameter of bulk calls. */
export const dryRun = flag('Checks every row and reports the result. Nothing changes.');

const BULK_TYPES = { ndjson: 'application/x-ndjson', csv: 'text/csv' } as const;
export type BulkFormat = keyof typeof BULK_TYPES;

export const MAX_BULK_ROWS = 10_000;
/** Octets. */
export const MAX_BULK_BODY = 16 << 20;

/** An undecoded body of one of these types. */
class BulkBody {
  readonly format: BulkFormat;
  readonly bytes: Buffer;

  constructor(format: BulkFormat, bytes: Buffer) {
    this.format = format;
    this.bytes = bytes;
  }
}

/** A row's content, or why it is malformed. */
export type BulkRow = { readonly row: number } & ({ readonly record: unknown } | { readonly problem: EstuaryError });

/** The result of a row. */
export type BulkAnswer = object | BulkFailure;

export interface BulkFailure {
  /** Line of the input at which it begins, from 1. */
  readonly row: number;
  readonly code: ErrorCode;
  readonly message: string;
}

export interface BulkInput {
  readonly format: BulkFormat;
  readonly header: readonly string[];
  readonly rows: readonly BulkRow[];
}

/** Accepts these types in the application; {@link takesBulk} says for which routes. */
export function registerBulkParsers(app: AdminApp): void {
  for (const format of ['ndjson', 'csv'] as const)
    app.addContentTypeParser(
      BULK_TYPES[format],
      { parseAs: 'buffer', bodyLimit: MAX_BULK_BODY },
      (_request, body: Buffer, done) => done(null, new BulkBody(format, body)),
    );
}

export function isBulkType(contentType: string | undefined): boolean {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  return Object.values(BULK_TYPES).some((known) => known === type);
}

export const isBulk = (body: unknown): boolean => body instanceof BulkBody;

/**
 * The rows of a body.
 * @throws EstuaryError 400 `BODY_NOT_UTF8`, `COLUMN_UNKNOWN`, `HEADER_MISSING`; 413 more than {@link MAX_BULK_ROWS};
 * 415
 */
export function readBulk(body: unknown, columns: Columns): BulkInput {
  if (!(body instanceof BulkBody))
    throw errorWith(415, 'MEDIA_TYPE_UNSUPPORTED', `the body must be ${Object.values(BULK_TYPES).join(' or ')}`);
  const text = decode(body.bytes);
  return body.format === 'csv' ? readCsv(text, columns) : { format: 'ndjson', header: [], rows: readNdjson(text) };
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw badRequest('BODY_NOT_UTF8', 'the body is not UTF-8');
  }
}

function readCsv(text: string, columns: Columns): BulkInput {
  let header: readonly string[] | undefined;
  const rows: BulkRow[] = [];
  for (const { fields, problem, line: row } of parseCsv(text)) {
    if (header === undefined) {
      if (problem !== undefined) throw badRequest('HEADER_MISSING', `the header line of the CSV has ${problem}`);
      header = fields;
      checkHeader(header, columns);
      continue;
    }
    checkNumber(rows);
    const wrong = problem ?? (fields.length === header.length ? undefined : `${fields.length} fields`);
    rows.push(
      wrong === undefined
        ? { row, record: recordOf(header, fields, columns) }
        : { row, problem: badRequest('ROW_INVALID', `the row has ${wrong}; the header has ${header.length} columns`) },
    );
  }
  if (header === undefined) throw badRequest('HEADER_MISSING', 'the CSV has no header line');
  return { format: 'csv', header, rows };
}

function readNdjson(text: string): BulkRow[] {
  const rows: BulkRow[] = [];
  const body = text.startsWith('\ufeff') ? text.slice(1) : text;
  for (let at = 0, row = 1; at < body.length; row += 1) {
    const newline = body.indexOf('\n', at);
    const end = newline < 0 ? body.length : newline;
    const line = body.slice(at, end).trim();
    at = end + 1;
    if (line === '') continue;
    checkNumber(rows);
    rows.push(parseLine(row, line));
  }
  return rows;
}

/** Before another row. @throws EstuaryError 413 */
function checkNumber(rows: readonly BulkRow[]): void {
  if (rows.length >= MAX_BULK_ROWS)
    throw errorWith(413, 'BODY_TOO_LARGE', `the body has more than ${MAX_BULK_ROWS} rows; nothing was done`);
}

function parseLine(row: number, line: string): BulkRow {
  try {
    const record: unknown = JSON.parse(line);
    return { row, record };
  } catch {
    return { row, problem: badRequest('ROW_INVALID', 'the row is not JSON') };
  }
}

/**
 * The result of a failed row. The message begins with the row's subject.
 * @param field that names it: `id`, `client_id`
 */
export function bulkFailure(row: BulkRow, field: string, error: unknown): BulkFailure {
  const record = 'record' in row && typeof row.record === 'object' && row.record !== null ? row.record : {};
  const name: unknown = Reflect.get(record, field);
  const about =
    typeof name === 'string' && name !== '' && name.length <= 256 ? `${field} ${JSON.stringify(name)}: ` : '';
  if (error instanceof EstuaryError) return { row: row.row, code: error.code, message: `${about}${error.message}` };
  return { row: row.row, code: 'INTERNAL_ERROR', message: `${about}the request failed inside the server` };
}

const FAILURE_COLUMNS = ['row', 'code', 'message'];

/** Streams the results in the format of the call. @param columns of the records, for CSV */
export function answerBulk(
  reply: FastifyReply,
  format: BulkFormat,
  columns: readonly string[],
  answers: AsyncIterable<BulkAnswer>,
): FastifyReply {
  const header = [...columns, ...FAILURE_COLUMNS.filter((name) => !columns.includes(name))];
  return format === 'csv'
    ? sendCsv(reply, header, answers, (answer) => cellsOf(header, answer))
    : send(
        reply,
        BULK_TYPES.ndjson,
        lines(answers, (answer) => `${JSON.stringify(answer)}\n`),
      );
}

/** Streams a whole selection as CSV. */
export function sendCsv<Row>(
  reply: FastifyReply,
  header: readonly string[],
  rows: AsyncIterable<Row>,
  cells: (row: Row) => readonly string[],
): FastifyReply {
  return send(
    reply,
    `${BULK_TYPES.csv}; charset=utf-8; header=present`,
    lines(rows, (row) => csvLine(cells(row)), csvLine(header)),
  );
}

function send(reply: FastifyReply, type: string, text: AsyncIterable<string>): FastifyReply {
  return reply.type(type).send(Readable.from(text, { objectMode: false }));
}

async function* lines<T>(items: AsyncIterable<T>, line: (item: T) => string, first = ''): AsyncGenerator<string> {
  let text = first;
  for await (const item of items) {
    text += line(item);
    if (text.length < 16_384) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

/** Whether the client accepts a list as CSV. */
export function wantsCsv({ headers: { accept } }: Pick<FastifyRequest, 'headers'>): boolean {
  const quality = (type: string): number => {
    const found = accept?.split(',').find((range) => range.split(';', 1)[0]?.trim().toLowerCase() === type);
    const q = found === undefined ? undefined : /;\s*q=([\d.]+)/i.exec(found)?.[1];
    return found === undefined ? 0 : Number(q ?? 1);
  };
  return quality(BULK_TYPES.csv) > 0 && quality(BULK_TYPES.csv) >= quality('application/json');
}
