/** Devices as rows: what is in a row, and what is made of it. */
import type { AuditEvent } from '../../audit/event.ts';
import { failed } from '../../errors.ts';
import { deviceMatchKey } from '../device-match.ts';
import { MATCH_FIELDS, type DeviceEntry, type DeviceMatch, type DeviceRow, type EntryResult } from '../device-store.ts';

export const DEVICE_COLUMNS = 'key, id, ca, enabled, not_after, note, match, attributes, created_at, changed_at';

/** Devices that a requester may be, at most: two are one too many already. */
export const FOUND = 8;

/** A row as databases have it. */
export type StoredDevice = Omit<DeviceRow, 'enabled' | 'match' | 'attributes'> & {
  readonly enabled: number;
  readonly match: string | null;
  readonly attributes: string;
};

export function toDeviceRow(stored: StoredDevice): DeviceRow {
  return {
    ...stored,
    enabled: stored.enabled === 1,
    match: stored.match === null ? null : readMatch(stored.match, stored.id),
    attributes: readTexts(stored.attributes, stored.id),
  };
}

/** A row to write, with the key by which its match is found. */
export type WrittenDevice = StoredDevice & { readonly match_key: string | null };

export const toWrittenDevice = (row: DeviceRow): WrittenDevice => ({
  ...row,
  enabled: row.enabled ? 1 : 0,
  match: row.match === null ? null : JSON.stringify(row.match),
  match_key: row.match === null ? null : deviceMatchKey(row.match),
  attributes: JSON.stringify(row.attributes),
});

export const INSERT_DEVICE = `INSERT INTO device (${DEVICE_COLUMNS}, match_key) VALUES (@key, @id, @ca, @enabled, @not_after,
  @note, @match, @attributes, @created_at, @changed_at, @match_key) ON CONFLICT (id) DO NOTHING`;

export const UPDATE_DEVICE = `UPDATE device SET ca = @ca, enabled = @enabled, not_after = @not_after, note = @note,
  match = @match, match_key = @match_key, attributes = @attributes, changed_at = @changed_at WHERE id = @id`;

function readMatch(json: string, id: string): DeviceMatch {
  const texts = readTexts(json, id);
  return Object.fromEntries(
    MATCH_FIELDS.flatMap((field) => (texts[field] === undefined ? [] : [[field, texts[field]]])),
  );
}

function readTexts(json: string, id: string): Record<string, string> {
  const value: unknown = JSON.parse(json);
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : undefined;
  const texts = entries?.flatMap(([name, text]: [string, unknown]) => (typeof text === 'string' ? [[name, text]] : []));
  if (entries === undefined || texts?.length !== entries.length)
    throw failed('STORE_FAILED', 'the store failed', { detail: `device ${id}: no object of strings` });
  return Object.fromEntries(texts) as Record<string, string>;
}

/** What became of an entry, and what the audit log says of it. */
export interface Entered {
  readonly result: EntryResult;
  readonly events: readonly { readonly event: AuditEvent; readonly device: string }[];
}

/** A known device after an upsert: fields that were not given stay as they are. */
export function upserted(stored: StoredDevice, { row, change = {}, merges = false }: DeviceEntry): DeviceRow {
  const before = toDeviceRow(stored);
  const { match, attributes } = change;
  return {
    ...before,
    ...change,
    ...(merges && match ? { match: { ...before.match, ...match } } : {}),
    ...(merges && attributes ? { attributes: { ...before.attributes, ...attributes } } : {}),
    changed_at: row.changed_at,
  };
}

/** What the audit log says of an upsert that changed a known device. */
export function upsertedEvents({ events }: DeviceEntry, { key, ca }: DeviceRow): Entered['events'] {
  return events.map((event) => ({
    event: {
      ...event,
      ...(ca === null ? {} : { ca }),
      type: event.type === 'device.created' ? 'device.changed' : event.type,
    },
    device: key,
  }));
}
