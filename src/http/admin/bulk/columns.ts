/** Columns of CSV tables, and conversion of fields to text. */
import { badRequest } from '../../../errors.ts';

type ColumnType = 'text' | 'integer' | 'boolean';

/** The columns of one record type: by name, or by prefix (`attributes.`). */
export interface Columns {
  readonly named: Readonly<Record<string, ColumnType>>;
  /** Text columns; the rest of the name is the name in the object. */
  readonly prefixes?: readonly string[];
}

/** @throws EstuaryError 400 `COLUMN_UNKNOWN` for an unknown or repeated column */
export function checkHeader(header: readonly string[], { named, prefixes = [] }: Columns): void {
  const unknown = header.find(
    (name) => !Object.hasOwn(named, name) && !prefixes.some((prefix) => name.startsWith(prefix) && name !== prefix),
  );
  const known = [...Object.keys(named), ...prefixes.map((prefix) => `${prefix}NAME`)].join(', ');
  if (unknown !== undefined)
    throw badRequest(
      'COLUMN_UNKNOWN',
      `there is no column ${JSON.stringify(unknown.slice(0, 64))}; there are ${known}`,
    );
  const twice = header.find((name, n) => header.indexOf(name) !== n);
  if (twice !== undefined) throw badRequest('COLUMN_UNKNOWN', `the column ${JSON.stringify(twice)} occurs twice`);
}

/** The record of a row: an empty cell is absent, `match.issuer` is a field of the object `match`. */
export function recordOf(header: readonly string[], cells: readonly string[], { named }: Columns): object {
  const record = new Map<string, unknown>();
  header.forEach((name, n) => {
    const cell = cells[n] ?? '';
    if (cell === '') return;
    const dot = name.indexOf('.');
    const value = typed(cell, named[name] ?? 'text');
    if (dot < 0) record.set(name, value);
    else {
      const inner = record.get(name.slice(0, dot));
      const fields = inner instanceof Map ? inner : new Map<string, unknown>();
      record.set(name.slice(0, dot), fields.set(name.slice(dot + 1), value));
    }
  });
  return Object.fromEntries(
    [...record].map(([name, value]) => [name, value instanceof Map ? Object.fromEntries(value) : value]),
  );
}

/** Text that is not a number or boolean stays text; the record's schema rejects it by name. */
function typed(cell: string, type: ColumnType): unknown {
  if (type === 'integer' && /^-?\d{1,15}$/.test(cell)) return Number(cell);
  // Spreadsheets write TRUE.
  return type === 'boolean' && /^(true|false)$/i.test(cell) ? cell.toLowerCase() === 'true' : cell;
}

/** A record's cells under a header; null and absent values are empty. */
export function cellsOf(header: readonly string[], record: object): string[] {
  return header.map((name) => {
    const direct: unknown = Reflect.get(record, name);
    if (direct !== undefined && direct !== null) return text(direct);
    const dot = name.indexOf('.');
    const inner: unknown = dot < 0 ? undefined : Reflect.get(record, name.slice(0, dot));
    if (typeof inner !== 'object' || inner === null) return '';
    const key = name.slice(dot + 1);
    return Object.hasOwn(inner, key) ? text(Reflect.get(inner, key)) : '';
  });
}

/**
 * A record's cells for a spreadsheet. Lists become one text, separated by spaces. Text that looks like a formula gets a
 * leading apostrophe, since some of it comes from login attempts.
 */
export function reportCells(header: readonly string[], record: object): string[] {
  return header.map((name) => {
    const value: unknown = Reflect.get(record, name);
    const cell = Array.isArray(value) ? value.map(text).join(' ') : text(value);
    return /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  });
}

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null || value === undefined ? '' : JSON.stringify(value);
}
