/** Registered devices and their history. */
import Type from 'typebox';
import { Check } from 'typebox/value';
import { type AuditEvent, type AuditRecord, REQUESTER_AUTHENTICATION } from '../audit/event.ts';
import { toRecord } from './audit-store.ts';
import { done, type Events, undone } from './calls/calls.ts';
import { storeFailed } from './calls/errors.ts';
import {
  CERTIFICATE_COLUMNS,
  type CertificateRow,
  type ListedCertificate,
  type StoredCertificate,
  toCertificateRow,
} from './certificate-store.ts';
import { type DeviceMatch, deviceMatchKey, MATCH_FIELDS } from './device-match.ts';
import { OTP_COLUMNS, type OtpRow } from './otp-store.ts';
import { fold, type Page, type PageRequest } from './page.ts';
import { type Calls, lock, nothing, quickRead, slowRead, write } from './operation.ts';
import {
  type Database,
  type Dialect,
  given,
  insertInto,
  type Operation,
  result,
  someContains,
  type Write,
} from './port.ts';
import { REQUEST_COLUMNS, type RequestRow, type StoredRequest, toRequestRow } from './request-store.ts';

export interface DeviceRow {
  /** Unique per entry: a later device with the same ID has another key. */
  readonly key: string;
  /** Unique per label, and among the devices without one. */
  readonly id: string;
  /** The label that the device is limited to, or null. */
  readonly ca: string | null;
  readonly enabled: boolean;
  readonly not_after: number | null;
  readonly note: string | null;
  readonly match: DeviceMatch | null;
  readonly attributes: Readonly<Record<string, string>>;
  readonly created_at: number;
  readonly changed_at: number;
}

/** Fields that an administrator may change. */
export type DeviceChange = Partial<Pick<DeviceRow, 'ca' | 'enabled' | 'not_after' | 'note' | 'match' | 'attributes'>>;

export interface DeviceSelection {
  readonly id?: string | undefined;
  readonly ca?: string | undefined;
  readonly enabled?: boolean | undefined;
  /** A part of the ID, the note or a value of `match`, ignoring case. */
  readonly search?: string | undefined;
  /** Only rows of these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface DeviceFilter extends DeviceSelection, PageRequest {}

/**
 * A device to add; its event is `device.created`, which becomes `device.changed` if an upsert changes an existing
 * device.
 */
export interface DeviceEntry {
  readonly row: DeviceRow;
  /** The given fields, which an upsert changes in an existing device. Absent: none. */
  readonly change?: DeviceChange;
  /**
   * An upsert keeps fields of `match` and `attributes` that `change` does not name. Otherwise it replaces both as a
   * whole.
   */
  readonly merges?: boolean;
  readonly events: Events;
}

/** The row of an entry, or why nothing changed: the device exists, or its ID does at several labels and the entry names none. */
export type EntryResult =
  { readonly result: 'created' | 'changed'; readonly row: DeviceRow } | { readonly result: 'known' | 'ambiguous' };

/** A device's history, newest first in each list. */
export interface DeviceHistory {
  readonly certificates: readonly ListedCertificate[];
  /** Created for its ID. */
  readonly tokens: readonly OtpRow[];
  readonly requests: readonly RequestRow[];
  readonly events: readonly AuditRecord[];
}

export interface DeviceClaim {
  /** The device's ID. */
  readonly name: string | null;
  /** Serial number of the device's certificate. */
  readonly serial: string | null;
  /** The label of the request. */
  readonly ca: string | null;
}

/** The claim in a failed authentication or a lockout: the store links the record to the device on commit. */
export function deviceClaim({ type, outcome, subject, serial, ca }: AuditEvent): DeviceClaim | undefined {
  const isFailure = outcome === 'failure' && REQUESTER_AUTHENTICATION.includes(type);
  if (!isFailure && type !== 'lockout.started') return undefined;
  // The subject of a certificate is not an ID.
  const name = type === 'auth.mtls' ? undefined : subject;
  if (name === undefined && serial === undefined) return undefined;
  return { name: name ?? null, serial: serial ?? null, ca: ca ?? null };
}

/** Finds a requester's device: by key, by ID, or by its certificate. */
export type DeviceQuery = { readonly key: string } | { readonly id: string };

export interface DevicesByCertificate {
  /** The records of devices' certificates with its serial number, of any issuer. */
  readonly recorded: readonly Pick<CertificateRow, 'der' | 'device_key' | 'required_device'>[];
  /** Those whose match has one of the keys, with the limits of {@link DeviceStore.findDevices}. */
  readonly matching: readonly DeviceRow[];
}

/** The ID of a row of table device. */
export const DEVICE_ID = 'coalesce(device.name, device.id)';
const OTHERS = 'ca, enabled, not_after, note, match, attributes, created_at, changed_at';
const DEVICE_COLUMNS = `key, ${DEVICE_ID} AS id, ${OTHERS}`;
/** The columns of the table. */
export const STORED_COLUMNS = `key, id, name, ${OTHERS}, match_key`;

/** Condition of a row that a label, `@ca`, admits by its ID: its own entry counts before the one without a label. */
const counts = (ca: string, ifAny = ''): string => `(device.ca = ${ca} OR device.ca IS NULL AND NOT EXISTS
  (SELECT 1 FROM device AS own WHERE coalesce(own.name, own.id) = ${DEVICE_ID} AND own.ca = ${ca})${ifAny})`;
/** Condition of a row that a {@link DeviceClaim} may be about; `ca` is its label. */
export const claimedAt = (ca: string): string => counts(ca, ` OR ${ca} IS NULL`);

/** Maximum devices returned for a requester; two are already ambiguous. */
const FOUND = 8;

type StoredDevice = Omit<DeviceRow, 'enabled' | 'match' | 'attributes'> & {
  readonly enabled: number;
  readonly match: string | null;
  readonly attributes: string;
};

/** A row to write, with the lookup key of its match. */
type WrittenDevice = StoredDevice & { readonly match_key: string | null };

const toDeviceRow = (stored: StoredDevice): DeviceRow => ({
  ...stored,
  enabled: stored.enabled === 1,
  match: stored.match === null ? null : readMatch(stored.match, stored.id),
  attributes: readTexts(stored.attributes, stored.id),
});

const toWrittenDevice = (row: DeviceRow): WrittenDevice => ({
  ...row,
  enabled: row.enabled ? 1 : 0,
  match: row.match === null ? null : JSON.stringify(row.match),
  match_key: row.match === null ? null : deviceMatchKey(row.match),
  attributes: JSON.stringify(row.attributes),
});

function readMatch(json: string, id: string): DeviceMatch {
  const texts = readTexts(json, id);
  return Object.fromEntries(
    MATCH_FIELDS.flatMap((field) => (texts[field] === undefined ? [] : [[field, texts[field]]])),
  );
}

const TEXTS = Type.Record(Type.String(), Type.String());

function readTexts(json: string, id: string): Record<string, string> {
  const value: unknown = JSON.parse(json);
  if (Check(TEXTS, value)) return value;
  throw storeFailed(`device ${id}: not an object of strings`);
}

function selected(selection: DeviceSelection, dialect: Dialect) {
  const { id, ca, enabled, search, labels } = selection;
  const value = dialect.contains('attribute.value', '@search');
  // First the whole text, which is cheaper: a part of a value is a part of its JSON.
  const ofMatch = `(${dialect.contains('device.match', '@json')} AND EXISTS
    (SELECT 1 FROM ${dialect.keysOf('device.match')} WHERE ${value}))`;
  const conditions = given([
    { value: labels, sql: 'device.ca = ANY(@labels)' },
    { value: id, sql: `${DEVICE_ID} = @id`, index: 'device_by_id' },
    { value: ca, sql: 'device.ca = @ca', index: 'device_by_ca' },
    enabled === true
      ? { value: enabled, sql: 'device.enabled = 1' }
      : { value: enabled, sql: 'device.enabled = 0', index: 'device_disabled' },
    { value: search, sql: someContains(dialect, [DEVICE_ID, 'device.note'], ofMatch) },
  ]);
  const folded = fold(search);
  return { conditions, parameters: { ...selection, search: folded, json: JSON.stringify(folded).slice(1, -1) } };
}

const BY_ID = `SELECT ${DEVICE_COLUMNS} FROM device WHERE ${DEVICE_ID} = ? ORDER BY ca IS NOT NULL, ca`;
const admitted = (condition: string): string =>
  `SELECT ${DEVICE_COLUMNS} FROM device WHERE ${condition} LIMIT ${FOUND}`;
const ADMITTED = {
  byKey: admitted('key = @key AND (ca IS NULL OR ca = @ca)'),
  byId: admitted(`${DEVICE_ID} = @id AND ${counts('@ca')}`),
  byMatch: admitted(`match_key = ANY(@keys) AND ${counts('@ca')}`),
};
const NEWEST = {
  certificates: `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE device_key = ? ORDER BY position DESC LIMIT ?`,
  tokens: `SELECT ${OTP_COLUMNS} FROM otp WHERE client_id = ? AND (ca IS NULL OR ca = coalesce(?, ca)) ORDER BY position DESC LIMIT ?`,
  requests: `SELECT ${REQUEST_COLUMNS} FROM request WHERE device_key = ? ORDER BY position DESC LIMIT ?`,
};

export function deviceReads(db: Database) {
  const list = db.list<StoredDevice>({ name: 'device', table: 'device', columns: DEVICE_COLUMNS });
  return {
    /** The devices with an ID: first the one without a label, then by label. */
    getDevices: quickRead(function* (id: string): Operation<readonly DeviceRow[]> {
      return (yield* db.all<StoredDevice>(BY_ID, id)).map(toDeviceRow);
    }),
    /** The devices that a requester may be, enabled or not, among those admitted to this CA: at most a few. */
    findDevices: quickRead(function* (query: DeviceQuery, ca: string): Operation<readonly DeviceRow[]> {
      const rows = yield* db.all<StoredDevice>('key' in query ? ADMITTED.byKey : ADMITTED.byId, { ...query, ca });
      return rows.map(toDeviceRow);
    }),
    /** What says which device a certificate belongs to. @param match_keys its {@link certificateMatchKeys} */
    findDevicesByCertificate: quickRead(function* (
      serial: string,
      match_keys: readonly string[],
      ca: string,
    ): Operation<DevicesByCertificate> {
      const [recorded, matching] = yield* db.together([
        db.all<DevicesByCertificate['recorded'][number]>`SELECT der, device_key, required_device FROM certificate
          WHERE serial = ${serial} AND device_key IS NOT NULL`,
        db.all<StoredDevice>(ADMITTED.byMatch, { keys: match_keys, ca }),
      ]);
      return { recorded, matching: matching.map(toDeviceRow) };
    }),
    /** In insertion order, oldest first by default. */
    listDevices: slowRead((filter: DeviceFilter): Operation<Page<DeviceRow>> => {
      const { conditions, parameters } = selected(filter, db.dialect);
      return list(conditions, parameters, filter, toDeviceRow);
    }),
    /** Names of all devices' attributes, sorted. */
    listDeviceAttributes: slowRead(function* (selection: DeviceSelection): Operation<readonly string[]> {
      const { conditions, parameters } = selected(selection, db.dialect);
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}`;
      const names = yield* db.all<{ name: string }>(
        `SELECT DISTINCT attribute.key AS name FROM device, ${db.dialect.keysOf('device.attributes')} ${where}`,
        parameters,
      );
      return names.map(({ name }) => name).sort();
    }),
    /** @param limit per list */
    deviceHistory: slowRead(function* (
      { id, key, ca }: Pick<DeviceRow, 'id' | 'key' | 'ca'>,
      limit: number,
    ): Operation<DeviceHistory> {
      const [issued, tokens, requested, recorded] = yield* db.together([
        db.all<StoredCertificate>(NEWEST.certificates, key, limit),
        db.all<OtpRow>(NEWEST.tokens, id, ca, limit),
        db.all<StoredRequest>(NEWEST.requests, key, limit),
        db.all<{ line: string }>(db.dialect.deviceEvents, { key, limit }),
      ]);
      return {
        certificates: issued.map(toCertificateRow),
        tokens,
        requests: requested.map(toRequestRow),
        events: recorded.map(toRecord),
      };
    }),
  };
}

/** The result of an entry, and its audit events. */
interface Entered {
  readonly result: EntryResult;
  readonly events: readonly { readonly event: AuditEvent; readonly device: string }[];
}

const ADD = `${insertInto('device', STORED_COLUMNS)} ON CONFLICT DO NOTHING`;
const CHANGE = `UPDATE device SET ca = @ca, enabled = @enabled, not_after = @not_after, note = @note, match = @match,
  match_key = @match_key, attributes = @attributes, changed_at = @changed_at WHERE key = @key`;
const TAKEN = `SELECT key FROM device WHERE ${DEVICE_ID} = ? AND coalesce(ca, '') = coalesce(?, '')`;

const FOR_UPDATE = `SELECT ${DEVICE_COLUMNS} FROM device WHERE key = ? FOR UPDATE`;

const listed = (entries: readonly DeviceEntry[]) => entries.flatMap(({ row }) => lock.device(row.id));

/** The device that an upsert changes; undefined: a new one. */
export function upsertedOf(
  known: readonly DeviceRow[],
  { row, change = {} }: Pick<DeviceEntry, 'row' | 'change'>,
): DeviceRow | undefined | 'ambiguous' {
  const [first, ...others] = known;
  if (change.ca !== undefined) return known.find(({ ca }) => ca === row.ca);
  return first?.ca === null || others.length === 0 ? first : 'ambiguous';
}

export function deviceWrites(db: Database) {
  function* put(entry: DeviceEntry, mode: 'create' | 'upsert'): Operation<Entered> {
    const { row } = entry;
    const known = mode === 'create' ? [] : (yield* db.all<StoredDevice>(BY_ID, row.id)).map(toDeviceRow);
    const before = upsertedOf(known, entry);
    if (before === 'ambiguous') return { result: { result: before }, events: [] };
    if (before !== undefined) {
      const changed = upserted(before, entry);
      yield* db.run(CHANGE, toWrittenDevice(changed));
      return { result: { result: 'changed', row: changed }, events: upsertedEvents(entry, changed) };
    }
    // Column id is unique. It has the ID unless another device has it there: servers of version 0.2 find devices by it.
    const written = { ...toWrittenDevice(row), name: null };
    const isAdded =
      (yield* db.run(ADD, written)) === 1 ||
      (yield* db.run(ADD, { ...written, id: `${row.id}\u001f${row.key}`, name: row.id })) === 1;
    if (!isAdded) return { result: { result: 'known' }, events: [] };
    return {
      result: { result: 'created', row },
      events: entry.events.map((event) => ({ event, device: row.key })),
    };
  }

  return {
    /**
     * Adds devices independently of each other.
     * @param mode `upsert`: changes the given fields of an existing device: the one with this ID and label. An entry without a label
     * changes the one without, or the only one.
     */
    putDevices: write(listed, function* (entries: readonly DeviceEntry[], mode: 'create' | 'upsert'): Write<
      readonly EntryResult[]
    > {
      // Sequentially: a repeated device must find the first one.
      const entered: Entered[] = [];
      for (const entry of entries) entered.push(yield* put(entry, mode));
      return {
        value: entered.map(({ result }) => result),
        events: [],
        ofDevices: entered.flatMap(({ events }) => events),
      };
    }),
    /** The changed device; undefined: it is no longer as it was read; `known`: its ID exists at the new label. */
    changeDevice: write(
      ({ id }: Pick<DeviceRow, 'id'>) => lock.device(id),
      function* (
        { key, ca }: Pick<DeviceRow, 'key' | 'id' | 'ca'>,
        change: DeviceChange,
        now: number,
        events: Events,
      ): Write<DeviceRow | undefined | 'known'> {
        const before = yield* db.get<StoredDevice>(FOR_UPDATE, key);
        if (before === undefined || before.ca !== ca) return undone(undefined);
        const row: DeviceRow = { ...toDeviceRow(before), ...change, changed_at: now };
        if (row.ca !== ca && (yield* db.get(TAKEN, row.id, row.ca)) !== undefined) return undone('known');
        yield* db.run(CHANGE, toWrittenDevice(row));
        return done(row, events, row.key);
      },
    ),
    /** Deletes a device. Its certificates, requests and tokens stay without a device. `false`: unknown key. */
    deleteDevice: write(lock.deviceOf, function* (key: string, events: Events): Write<boolean> {
      return (yield* db.run`DELETE FROM device WHERE key = ${key}`) === 1 ? done(true, events) : undone(false);
    }),
    /** Commits events that concern a device and belong to no other change. */
    auditDevice: write(nothing, (key: string, events: Events): Write<void> => result(done(undefined, events, key))),
  };
}

/** An existing device after an upsert; fields that are not given stay. */
function upserted(before: DeviceRow, { row, change = {}, merges = false }: DeviceEntry): DeviceRow {
  const { match, attributes } = change;
  return {
    ...before,
    ...change,
    ...(merges && match ? { match: { ...before.match, ...match } } : {}),
    ...(merges && attributes ? { attributes: { ...before.attributes, ...attributes } } : {}),
    changed_at: row.changed_at,
  };
}

function upsertedEvents({ events }: DeviceEntry, { key, ca }: DeviceRow): Entered['events'] {
  return events.map((event) => ({
    event: {
      ...event,
      ...(ca === null ? {} : { ca }),
      device_key: key,
      type: event.type === 'device.created' ? 'device.changed' : event.type,
    },
    device: key,
  }));
}

/**
 * The registered devices. Certificates, requests and reservations carry the key of their device. Queuing, approving,
 * reserving and recording check in their transaction that the device is enabled, not expired, and admitted to the CA.
 */
export type DeviceStore = Calls<ReturnType<typeof deviceReads> & ReturnType<typeof deviceWrites>>;
