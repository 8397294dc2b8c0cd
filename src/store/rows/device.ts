/** Devices as rows: what is in a row, and what is made of it. */
import type { AuditEvent } from '../../audit/event.ts';
import { failed } from '../../errors.ts';
import type { DeviceMatch, DeviceRow, EntryResult } from '../device-store.ts';

export const DEVICE_COLUMNS =
  'key, id, ca, enabled, not_after, note, match, match_key, attributes, created_at, changed_at';

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

export const toStoredDevice = (row: DeviceRow): StoredDevice => ({
  ...row,
  enabled: row.enabled ? 1 : 0,
  match: row.match === null ? null : JSON.stringify(row.match),
  attributes: JSON.stringify(row.attributes),
});

const MATCH_FIELDS = ['issuer', 'serial_number', 'common_name', 'san', 'fingerprint_sha256'] as const;

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

/** Of an entry that replaces a device. */
export const asChange = (event: AuditEvent): AuditEvent =>
  event.type === 'device.created' ? { ...event, type: 'device.changed' } : event;
