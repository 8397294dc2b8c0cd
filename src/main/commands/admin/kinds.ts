/** The kinds of record that the API has, as tables for people show them. */
import { printable, type Colour, type Column } from '../text-table.ts';
import { isRecord, textAt, type JsonRecord } from './json.ts';

export interface Field extends Column {
  readonly of: (record: JsonRecord) => string;
}

/** What tells a record from the others of its kind. */
export interface Kind {
  /** Whether a record is one. */
  readonly fits: (record: JsonRecord) => boolean;
  readonly key: (record: JsonRecord) => string;
  readonly fields: readonly Field[];
}

const STATES: Readonly<Record<string, Colour>> = {
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
  down: 'red',
  failure: 'red',
  refuse: 'red',
};

/** What a state means at a glance. */
export const colourOf = (text: string): Colour | undefined => (Object.hasOwn(STATES, text) ? STATES[text] : undefined);

const field = (name: string, head = name.replaceAll('_', ' ').toUpperCase()): Field => ({
  head,
  of: (record) => cell(record[name]),
});
const shrinking = (name: string, head?: string): Field => ({ ...field(name, head), shrinks: true });
const state = (name: string): Field => ({ ...field(name), colour: colourOf });

/** A value as a person reads it; times to the second, in UTC. */
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
    { ...field('enabled'), colour: (text) => (text === 'yes' ? 'green' : 'red') },
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

/** Of records of which nothing is known: a column for each field. */
export const kindOf = (records: readonly JsonRecord[]): Kind => ({
  fits: () => true,
  key: (record) => JSON.stringify(record),
  fields: [...new Set(records.flatMap((record) => Object.keys(record)))].map((name) => shrinking(name)),
});

/** The kinds of record that others hold lists of, by the name of the list. */
export const INNER: Readonly<Record<string, Kind>> = {
  certificates: CERTIFICATES,
  tokens: OTPS,
  requests: REQUESTS,
  events: AUDIT,
};

/** A line about a record, for a question. */
export const inWords = (record: JsonRecord, names: readonly string[]): string =>
  names.map((name) => `  ${name.padEnd(12)} ${printable(cell(record[name]))}\n`).join('');
