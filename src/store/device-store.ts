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

/** `known`: a device with this ID exists, and nothing changed. */
export type EntryResult = 'created' | 'changed' | 'known';

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

export const DEVICE_COLUMNS = 'key, id, ca, enabled, not_after, note, match, attributes, created_at, changed_at';

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
    { value: id, sql: 'device.id = @id', index: 'sqlite_autoindex_device_2' },
    { value: ca, sql: 'device.ca = @ca', index: 'device_by_ca' },
    enabled === true
      ? { value: enabled, sql: 'device.enabled = 1' }
      : { value: enabled, sql: 'device.enabled = 0', index: 'device_disabled' },
    { value: search, sql: someContains(dialect, ['device.id', 'device.note'], ofMatch) },
  ]);
  const folded = fold(search);
  return { conditions, parameters: { ...selection, search: folded, json: JSON.stringify(folded).slice(1, -1) } };
}

const isAtLabels = ({ ca }: Pick<DeviceRow, 'ca'>, labels: readonly string[] | undefined): boolean =>
  labels === undefined || (ca !== null && labels.includes(ca));

const BY_ID = `SELECT ${DEVICE_COLUMNS} FROM device WHERE id = ?`;
const admitted = (condition: string): string =>
  `SELECT ${DEVICE_COLUMNS} FROM device WHERE ${condition} AND (ca IS NULL OR ca = @ca) LIMIT ${FOUND}`;
const ADMITTED = {
  byKey: admitted('key = @key'),
  byId: admitted('id = @id'),
  byMatch: admitted('match_key = ANY(@keys)'),
};
const NEWEST = {
  certificates: `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE device_key = ? ORDER BY position DESC LIMIT ?`,
  tokens: `SELECT ${OTP_COLUMNS} FROM otp WHERE client_id = ? ORDER BY position DESC LIMIT ?`,
  requests: `SELECT ${REQUEST_COLUMNS} FROM request WHERE device_key = ? ORDER BY position DESC LIMIT ?`,
};

export function deviceReads(db: Database) {
  const list = db.list<StoredDevice>({ name: 'device', table: 'device', columns: DEVICE_COLUMNS });
  return {
    getDevice: quickRead(function* (id: string): Operation<DeviceRow | undefined> {
      const stored = yield* db.get<StoredDevice>(BY_ID, id);
      return stored === undefined ? undefined : toDeviceRow(stored);
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
      { id, key }: Pick<DeviceRow, 'id' | 'key'>,
      limit: number,
    ): Operation<DeviceHistory> {
      const [issued, tokens, requested, recorded] = yield* db.together([
        db.all<StoredCertificate>(NEWEST.certificates, key, limit),
        db.all<OtpRow>(NEWEST.tokens, id, limit),
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

const FOR_UPDATE = `${BY_ID} FOR UPDATE`;
const ADD = `${insertInto('device', `${DEVICE_COLUMNS}, match_key`)} ON CONFLICT (id) DO NOTHING`;
const CHANGE = `UPDATE device SET ca = @ca, enabled = @enabled, not_after = @not_after, note = @note, match = @match,
  match_key = @match_key, attributes = @attributes, changed_at = @changed_at WHERE id = @id`;

const listed = (entries: readonly DeviceEntry[]) => entries.flatMap(({ row }) => lock.device(row.id));

export function deviceWrites(db: Database) {
  function* put(entry: DeviceEntry, mode: 'create' | 'upsert', labels?: readonly string[]): Operation<Entered> {
    const { row, events } = entry;
    if ((yield* db.run(ADD, toWrittenDevice(row))) === 1)
      return { result: 'created', events: events.map((event) => ({ event, device: row.key })) };
    const before = mode === 'create' ? undefined : yield* db.get<StoredDevice>(FOR_UPDATE, row.id);
    if (before === undefined || !isAtLabels(before, labels)) return { result: 'known', events: [] };
    const changed = upserted(before, entry);
    yield* db.run(CHANGE, toWrittenDevice(changed));
    return { result: 'changed', events: upsertedEvents(entry, changed) };
  }

  return {
    /**
     * Adds devices independently of each other.
     * @param mode `upsert`: changes the given fields of an existing device
     * @param labels an upsert changes only devices of these labels; others are `known`
     */
    putDevices: write(
      listed,
      function* (
        entries: readonly DeviceEntry[],
        mode: 'create' | 'upsert',
        labels?: readonly string[],
      ): Write<readonly EntryResult[]> {
        // Sequentially: a repeated device must find the first one.
        const entered: Entered[] = [];
        for (const entry of entries) entered.push(yield* put(entry, mode, labels));
        return {
          value: entered.map((one) => one.result),
          events: [],
          ofDevices: entered.flatMap(({ events }) => events),
        };
      },
    ),
    /** The changed device; undefined: no device of these labels has this ID. @param labels default: any */
    changeDevice: write(
      lock.device,
      function* (
        id: string,
        change: DeviceChange,
        now: number,
        events: Events,
        labels?: readonly string[],
      ): Write<DeviceRow | undefined> {
        const before = yield* db.get<StoredDevice>(FOR_UPDATE, id);
        if (before === undefined || !isAtLabels(before, labels)) return undone(undefined);
        const row: DeviceRow = { ...toDeviceRow(before), ...change, changed_at: now };
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
function upserted(stored: StoredDevice, { row, change = {}, merges = false }: DeviceEntry): DeviceRow {
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
