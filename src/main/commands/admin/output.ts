/** Prints records for people, as JSON or as CSV. */
import { reportCells } from '../../../http/admin/bulk/columns.ts';
import { csvLine } from '../../../http/admin/bulk/csv.ts';
import { type CommandContext, UsageError } from '../command.ts';
import { type Color, type Column, lookOf, painted, printable, textTable } from '../text-table.ts';
import { isRecord, type JsonRecord, textAt } from './json.ts';

interface Field extends Column {
  readonly of: (record: JsonRecord) => string;
}

/** Recognizes and displays one record type. */
export interface Kind {
  readonly fits: (record: JsonRecord) => boolean;
  readonly key: (record: JsonRecord) => string;
  readonly fields: readonly Field[];
}

const STATES: Readonly<Record<Color, readonly string[]>> = {
  green: ['active', 'valid', 'issued', 'approved', 'ok', 'success', 'issue'],
  yellow: ['pending', 'expired', 'degraded', 'queue', 'waiting', 'late'],
  red: ['revoked', 'rejected', 'failed', 'failing', 'stuck', 'down', 'failure', 'refuse'],
};
const COLORS = new Map(
  Object.entries(STATES).flatMap(([color, states]) => states.map((state) => [state, color as Color])),
);

/** Highlights a state. */
export const colorOf = (text: string): Color | undefined => COLORS.get(text);

const STATE_FIELDS = ['status', 'health', 'state', 'outcome'];
/** Fields of any length, which nobody copies from a table. */
const LONG_FIELDS = 'subject sans client_id requester match attributes note destination detail'.split(' ');
const HEADS: Readonly<Record<string, string>> = { sans: 'NAMES', key_type: 'KEY' };

const headOf = (name: string): string => name.replaceAll('_', ' ').toUpperCase();

const plain = (name: string): Field => ({
  head: headOf(name),
  of: (record) => cell(record[name]),
});

const field = (name: string): Field => ({
  ...plain(name),
  head: HEADS[name] ?? headOf(name),
  ...(LONG_FIELDS.includes(name) ? { shrinks: true } : {}),
  ...(STATE_FIELDS.includes(name) ? { color: colorOf } : {}),
});

/** Formats a value for people; times in UTC, to the second. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (typeof value === 'string')
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) ? `${value.slice(0, 19)}Z` : value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(cell).join(' ') || '-';
  if (isRecord(value)) {
    return (
      Object.entries(value)
        .map(([name, field]) => `${name}=${cell(field)}`)
        .join(' ') || '-'
    );
  }
  return typeof value === 'number' ? String(value) : JSON.stringify(value);
}

/**
 * @param mark the field that only these records have @param key the field that identifies a record
 * @param names fields that tell people which record it is
 */
const kind = (mark: string, [key, ...names]: readonly [string, ...string[]], fields: readonly (string | Field)[]) => ({
  fits: (record: JsonRecord) => mark in record,
  key: (record: JsonRecord) => textAt(record, key),
  fields: fields.map((given): Field => {
    const made = typeof given === 'string' ? field(given) : given;
    const identifies = typeof given === 'string' && [key, ...names].includes(given);
    return identifies ? { ...made, identifies } : made;
  }),
});

export const OTPS = kind(
  'max_uses',
  ['id', 'client_id'],
  [
    ...['id', 'client_id', 'ca', 'status'],
    { head: 'USES', of: (record) => `${cell(record['uses'])}/${cell(record['max_uses'])}` },
    { ...field('expires_at'), head: 'EXPIRES' },
  ],
);

export const CERTIFICATES: Kind = {
  ...kind(
    'fingerprint_sha256',
    ['serial', 'subject'],
    ['serial', 'ca', 'status', 'not_after', 'subject', 'sans', 'requester'],
  ),
  key: (record) => `${textAt(record, 'ca')} ${textAt(record, 'serial')}`,
};

export const REQUESTS = kind(
  'operation',
  ['id', 'subject'],
  [
    ...['id', 'ca', 'status'],
    { ...field('created_at'), head: 'CREATED' },
    ...['subject', 'sans', 'key_type', 'requester'],
  ],
);

export const DEVICES = kind(
  'attributes',
  ['id'],
  [
    ...['id', 'ca'],
    { ...field('enabled'), color: (text) => (text === 'yes' ? 'green' : 'red') },
    ...['not_after', 'certificate_not_after', 'last_used_at', 'match', 'attributes', 'note'],
  ],
);

const CA_FIELDS = ['label', 'default', 'driver', 'health', 'days_left', 'not_after', 'subject'];
export const CAS = kind('driver', ['label'], CA_FIELDS);

export const LOCKOUTS = kind('locked_until', ['key'], ['key', 'scope', 'failures', 'locked_until']);

const RECEIVER_FIELDS = ['name', 'kind', 'state', 'failures', 'behind', 'destination'];
export const RECEIVERS = kind('destination', ['name'], RECEIVER_FIELDS);

export const RENEWALS = kind('starts_at', ['id'], ['id', 'starts_at', 'by', 'reason', 'created_by']);

export const HOLDERS = kind(
  'window_end',
  ['device', 'serial', 'subject'],
  ['state', 'since', 'ca', 'subject', 'device', 'not_after', 'last_used_at', 'last_code'],
);

const ISSUERS = kind(
  'can_be_retired',
  ['key_sha256', 'subject'],
  ['subject', 'key_sha256', 'not_after', 'current', 'holders', 'informed', 'latest_expiry', 'can_be_retired'],
);

/** Of the certificates of a CA. */
const CONTENTS = kind('spki_sha256', ['serial', 'subject'], ['subject', 'key_type', 'not_after', 'serial']);

export const AUDIT = kind('prev_hash', ['seq', 'type'], ['seq', 'time', 'type', 'outcome', 'subject', 'ca', 'detail']);

/** A record type for unknown records: one column per field. */
export const kindOf = (records: readonly JsonRecord[]): Kind => ({
  fits: () => true,
  key: (record) => JSON.stringify(record),
  fields: [...new Set(records.flatMap((record) => Object.keys(record)))].map((name) => ({
    ...plain(name),
    shrinks: true,
  })),
});

/** Types of nested lists, by the list's name. */
const INNER: Readonly<Record<string, Kind>> = {
  certificates: CERTIFICATES,
  tokens: OTPS,
  requests: REQUESTS,
  events: AUDIT,
  issuers: ISSUERS,
  contents: CONTENTS,
  in_the_way: HOLDERS,
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
  const pems = entries.flatMap(([name, value]) => (isPem(value) ? [[name, [value].flat()] as const] : []));
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
    context.out(`\n${headOf(name)}\n${tableOf(kind, items, context)}`);
    for (const item of items)
      for (const [inner, records] of Object.entries(item)) {
        const innerKind = INNER[inner];
        if (innerKind === undefined || !isRecordList(records)) continue;
        const head = `${headOf(inner)} OF ${printable(kind.key(item))}`;
        context.out(`\n${head}\n${tableOf(innerKind, records, context)}`);
      }
  }
  for (const [name, group] of groups) {
    context.out(`\n${headOf(name)}\n`);
    printFields(group, context);
  }
  const shown = new Set<string>();
  for (const [name, list] of pems) {
    const fresh = list.filter((pem) => !shown.has(pem.trimEnd()));
    if (pems.length > 1 && fresh.length > 0) context.out(`\n${name.toUpperCase()}`);
    for (const pem of fresh) {
      shown.add(pem.trimEnd());
      context.out(`\n${pem.trimEnd()}\n`);
    }
  }
}

const isGroup = (value: unknown): value is JsonRecord =>
  isRecord(value) && Object.values(value).some((field) => isRecord(field) || isRecordList(field));

const isRecordList = (value: unknown): value is readonly JsonRecord[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRecord);

const isPem = (value: unknown): value is string | readonly string[] =>
  Array.isArray(value)
    ? value.length > 0 && value.every((element) => isPem(element))
    : typeof value === 'string' &&
      /^(?:-----(?:BEGIN|END) [A-Z0-9 ]+-----\n|[A-Za-z0-9+/=]{1,76}\n)+$/.test(`${value.trimEnd()}\n`) &&
      value.includes('-----BEGIN ');

/** @param wide whether it may be wider than the terminal @returns lines, the header first */
export function tableOf(
  { fields }: Kind,
  records: readonly JsonRecord[],
  context: CommandContext,
  wide = false,
): string {
  const look = lookOf(context);
  return textTable(
    fields,
    records.map((record) => fields.map(({ of }) => of(record))),
    wide ? { ...look, width: undefined } : look,
  );
}

/** CSV for lists that the server returns only as JSON; omits PEM. */
export function csvOf(records: readonly JsonRecord[]): string {
  const entries = records.flatMap((record) => Object.entries(record));
  const pems = new Set(entries.flatMap(([name, value]) => (isPem(value) ? [name] : [])));
  const header = [...new Set(entries.map(([name]) => name))].filter((name) => !pems.has(name));
  return [csvLine(header), ...records.map((record) => csvLine(reportCells(header, record)))].join('');
}
