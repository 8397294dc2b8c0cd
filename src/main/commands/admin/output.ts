/** Prints records for people, as JSON or as CSV. */
import { reportCells } from '../../../http/admin/bulk/columns.ts';
import { csvLine } from '../../../http/admin/bulk/csv.ts';
import { type CommandContext, UsageError } from '../command.ts';
import { type Color, type Column, lookOf, painted, printable, textTable } from '../text-table.ts';
import { isRecord, type JsonRecord, textAt } from './json.ts';

/** The API's record types and their table columns. */
interface Field extends Column {
  readonly of: (record: JsonRecord) => string;
}

/** Recognizes and displays one record type. */
export interface Kind {
  readonly fits: (record: JsonRecord) => boolean;
  readonly key: (record: JsonRecord) => string;
  readonly fields: readonly Field[];
}

const STATES: Readonly<Record<string, Color>> = {
  active: 'green',
  valid: 'green',
  issued: 'green',
  approved: 'green',
  ok: 'green',
  success: 'green',
  issue: 'green',
  pending: 'yellow',
  expired: 'yellow',
  degraded: 'yellow',

  queue: 'yellow',
  revoked: 'red',
  rejected: 'red',
  failed: 'red',
  failing: 'red',
  down: 'red',
  failure: 'red',
  refuse: 'red',
};

/** Highlights a state. */
export const colorOf = (text: string): Color | undefined => (Object.hasOwn(STATES, text) ? STATES[text] : undefined);

const field = (name: string, head = name.replaceAll('_', ' ').toUpperCase()): Field => ({
  head,
  of: (record) => cell(record[name]),
});
const shrinking = (name: string, head?: string): Field => ({ ...field(name, head), shrinks: true });
const state = (name: string): Field => ({ ...field(name), color: colorOf });

/** Formats a value for people; times in UTC, to the second. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (typeof value === 'string')
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) ? `${value.slice(0, 19)}Z` : value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cell).join(' ');
  if (isRecord(value)) {
    const texts = Object.entries(value).map(([name, one]) => `${name}=${cell(one)}`);
    return texts.length === 0 ? '-' : texts.join(' ');
  }
  return typeof value === 'number' ? String(value) : JSON.stringify(value);
}

const has =
  (name: string) =>
  (record: JsonRecord): boolean =>
    name in record;

export const OTPS: Kind = {
  fits: has('max_uses'),
  key: (record) => textAt(record, 'id'),
  fields: [
    field('id'),
    shrinking('client_id'),
    field('ca'),
    state('status'),
    { head: 'USES', of: (record) => `${cell(record['uses'])}/${cell(record['max_uses'])}` },
    field('expires_at', 'EXPIRES'),
  ],
};

export const CERTIFICATES: Kind = {
  fits: has('fingerprint_sha256'),
  key: (record) => `${textAt(record, 'ca')} ${textAt(record, 'serial')}`,
  fields: [
    field('serial'),
    field('ca'),
    state('status'),
    field('not_after'),
    shrinking('subject'),
    shrinking('sans', 'NAMES'),
    shrinking('requester'),
  ],
};

export const REQUESTS: Kind = {
  fits: has('operation'),
  key: (record) => textAt(record, 'id'),
  fields: [
    field('id'),
    field('ca'),
    state('status'),
    field('created_at', 'CREATED'),
    shrinking('subject'),
    shrinking('sans', 'NAMES'),
    field('key_type', 'KEY'),
    shrinking('requester'),
  ],
};

export const DEVICES: Kind = {
  fits: has('attributes'),
  key: (record) => textAt(record, 'id'),
  fields: [
    field('id'),
    field('ca'),
    { ...field('enabled'), color: (text) => (text === 'yes' ? 'green' : 'red') },
    field('not_after'),
    shrinking('match'),
    shrinking('attributes'),
    shrinking('note'),
  ],
};

export const CAS: Kind = {
  fits: has('driver'),
  key: (record) => textAt(record, 'label'),
  fields: [
    field('label'),
    field('default'),
    field('driver'),
    state('health'),
    field('days_left'),
    field('not_after'),
    shrinking('subject'),
  ],
};

export const LOCKOUTS: Kind = {
  fits: has('locked_until'),
  key: (record) => textAt(record, 'key'),
  fields: [field('key'), field('scope'), field('failures'), field('locked_until')],
};

export const RECEIVERS: Kind = {
  fits: has('destination'),
  key: (record) => textAt(record, 'name'),
  fields: [field('name'), field('kind'), state('state'), field('failures'), field('behind'), shrinking('destination')],
};

export const RENEWALS: Kind = {
  fits: has('starts_at'),
  key: (record) => textAt(record, 'id'),
  fields: [field('id'), field('starts_at'), field('by'), field('reason'), field('created_by')],
};

export const AUDIT: Kind = {
  fits: has('prev_hash'),
  key: (record) => textAt(record, 'seq'),
  fields: [
    field('seq'),
    field('time'),
    field('type'),
    state('outcome'),
    shrinking('subject'),
    field('ca'),
    shrinking('detail'),
  ],
};

/** A record type for unknown records: one column per field. */
export const kindOf = (records: readonly JsonRecord[]): Kind => ({
  fits: () => true,
  key: (record) => JSON.stringify(record),
  fields: [...new Set(records.flatMap((record) => Object.keys(record)))].map((name) => shrinking(name)),
});

/** Types of nested lists, by the list's name. */
const INNER: Readonly<Record<string, Kind>> = {
  certificates: CERTIFICATES,
  tokens: OTPS,
  requests: REQUESTS,
  events: AUDIT,
};

/** Summarizes a record for a question. */
export const inWords = (record: JsonRecord, names: readonly string[]): string =>
  names.map((name) => `  ${name.padEnd(12)} ${printable(cell(record[name]))}\n`).join('');

export interface FormatValues {
  readonly json: boolean;
  readonly csv?: boolean;
}

type Format = 'table' | 'json' | 'csv';

/** @throws UsageError if both are given */
export function formatOf({ json, csv = false }: FormatValues): Format {
  if (json && csv) throw new UsageError('--json and --csv exclude each other');
  return json ? 'json' : csv ? 'csv' : 'table';
}

/** Prints one record. For people: one line per field, then PEM unchanged. */
export function printRecord(record: JsonRecord, values: FormatValues, context: CommandContext): void {
  const format = formatOf(values);
  if (format === 'json') context.out(`${JSON.stringify(record, null, 2)}\n`);
  else if (format === 'csv') context.out(csvOf([record]));
  else printFields(record, context);
}

function printFields(record: JsonRecord, context: CommandContext): void {
  const look = lookOf(context);
  const entries = Object.entries(record);
  const lists = entries.flatMap(([name, value]) => (isRecordList(value) ? [[name, value] as const] : []));
  const pems = entries.flatMap(([, value]) => (isPem(value) ? [value].flat() : []));
  const groups = entries.flatMap(([name, value]) => (isGroup(value) ? [[name, value] as const] : []));
  const fields = entries.filter(([, value]) => !isRecordList(value) && !isPem(value) && !isGroup(value));
  const width = Math.max(0, ...fields.map(([name]) => name.length));
  for (const [name, value] of fields) {
    const text = cell(value);
    context.out(`${name.padEnd(width)}  ${painted(printable(text), colorOf(text), look)}\n`);
  }
  for (const [name, items] of lists) {
    const known = INNER[name];
    const kind = known !== undefined && items.every((item) => known.fits(item)) ? known : kindOf(items);
    context.out(`\n${name.toUpperCase().replaceAll('_', ' ')}\n${tableOf(kind, items, context)}`);
  }
  for (const [name, group] of groups) {
    context.out(`\n${name.toUpperCase().replaceAll('_', ' ')}\n`);
    printFields(group, context);
  }
  for (const pem of pems) context.out(`\n${pem.trimEnd()}\n`);
}

const isGroup = (value: unknown): value is JsonRecord =>
  isRecord(value) && Object.values(value).some((one) => isRecord(one) || isRecordList(one));

const isRecordList = (value: unknown): value is readonly JsonRecord[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRecord);

const isPem = (value: unknown): value is string | readonly string[] =>
  Array.isArray(value)
    ? value.length > 0 && value.every((one) => isPem(one))
    : typeof value === 'string' &&
      /^(?:-----(?:BEGIN|END) [A-Z0-9 ]+-----\n|[A-Za-z0-9+/=]{1,76}\n)+$/.test(`${value.trimEnd()}\n`) &&
      value.includes('-----BEGIN ');

/** @returns lines, the header first */
export function tableOf({ fields }: Kind, records: readonly JsonRecord[], context: CommandContext): string {
  return textTable(
    fields,
    records.map((record) => fields.map(({ of }) => of(record))),
    lookOf(context),
  );
}

/** CSV for lists that the server returns only as JSON; omits PEM. */
export function csvOf(records: readonly JsonRecord[]): string {
  const entries = records.flatMap((record) => Object.entries(record));
  const pems = new Set(entries.flatMap(([name, value]) => (isPem(value) ? [name] : [])));
  const header = [...new Set(entries.map(([name]) => name))].filter((name) => !pems.has(name));
  return [csvLine(header), ...records.map((record) => csvLine(reportCells(header, record)))].join('');
}
