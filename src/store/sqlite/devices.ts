import type { AuditEvent } from '../../audit/event.ts';
import type {
  DeviceChange,
  DeviceEntry,
  DeviceFilter,
  DeviceHistory,
  DeviceQuery,
  DeviceRow,
  DeviceSelection,
  EntryResult,
} from '../device-store.ts';
import type { OtpRow } from '../otp-store.ts';
import type { Page } from '../page.ts';
import { toRecord } from '../rows/audit.ts';
import { CERTIFICATE_COLUMNS, toCertificateRow, type StoredCertificate } from '../rows/certificate.ts';
import { readPosition, toPage, withoutPosition } from '../cursor.ts';
import type { Db } from './database.ts';
import { OTP_COLUMNS } from '../rows/otp.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import { type Condition, given, ListSearch } from './search/list-search.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/walk.ts';
import {
  DEVICE_COLUMNS,
  type Entered,
  FOUND,
  INSERT_DEVICE,
  type StoredDevice,
  toDeviceRow,
  toWrittenDevice,
  UPDATE_DEVICE,
  upserted,
  upsertedEvents,
  type WrittenDevice,
} from '../rows/device.ts';
import { REQUEST_COLUMNS, type StoredRequest, toRequestRow } from '../rows/request.ts';

/** What a selection asks of a row. */
function conditions({ id, ca, enabled }: DeviceSelection): readonly Condition[] {
  return [
    ...given([
      { value: id, sql: 'id = @id', index: 'sqlite_autoindex_device_2' },
      { value: ca, sql: 'ca = @ca', index: 'device_by_ca' },
    ]),
    ...(enabled === undefined
      ? []
      : [enabled ? { sql: 'enabled = 1' } : { sql: 'enabled = 0', index: 'device_disabled' }]),
  ];
}

/** The reads of devices. */
export function deviceReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const search = new ListSearch<StoredDevice & { position: number }>(
    db,
    { table: 'device', place: 'position', columns: DEVICE_COLUMNS },
    limits,
  );
  const byId = db.prepare<[string], StoredDevice>(`SELECT ${DEVICE_COLUMNS} FROM device WHERE id = ?`);
  const mayCome = '(ca IS NULL OR ca = @ca)';
  const byKey = db.prepare<{ key: string; ca: string }, StoredDevice>(
    `SELECT ${DEVICE_COLUMNS} FROM device WHERE key = @key AND ${mayCome}`,
  );
  const byIdAndCa = db.prepare<{ id: string; ca: string }, StoredDevice>(
    `SELECT ${DEVICE_COLUMNS} FROM device WHERE id = @id AND ${mayCome}`,
  );
  const byMatch = db.prepare<{ keys: string; ca: string }, StoredDevice>(
    `SELECT ${DEVICE_COLUMNS} FROM device WHERE match_key IN (SELECT value FROM json_each(@keys)) AND ${mayCome} LIMIT ${FOUND}`,
  );
  return {
    getDevice(id: string): DeviceRow | undefined {
      const stored = byId.get(id);
      return stored === undefined ? undefined : toDeviceRow(stored);
    },
    findDevices(query: DeviceQuery, ca: string): readonly DeviceRow[] {
      if ('key' in query) return byKey.all({ key: query.key, ca }).map(toDeviceRow);
      if ('id' in query) return byIdAndCa.all({ id: query.id, ca }).map(toDeviceRow);
      return byMatch.all({ keys: JSON.stringify(query.match_keys), ca }).map(toDeviceRow);
    },
    listDevices(filter: DeviceFilter): Page<DeviceRow> {
      const { limit } = filter;
      const after = readPosition('device', filter);
      const { rows, stopped } = search.find(conditions(filter), { ...filter }, { ...filter, after });
      return toPage(
        'device',
        rows,
        limit,
        (row) => row.position,
        (row) => toDeviceRow(withoutPosition(row)),
        stopped,
      );
    },
    listDeviceAttributes(selection: DeviceSelection): readonly string[] {
      const where = conditions(selection);
      return db
        .prepare<[object], { name: string }>(
          `SELECT DISTINCT attribute.key AS name FROM device, json_each(device.attributes) AS attribute
           ${where.length === 0 ? '' : `WHERE ${where.map(({ sql }) => `device.${sql}`).join(' AND ')}`} ORDER BY name`,
        )
        .all({ id: selection.id, ca: selection.ca })
        .map(({ name }) => name);
    },
    ...historyReads(db),
  };
}

function historyReads(db: Db) {
  const newest = 'ORDER BY position DESC LIMIT ?';
  const certificates = db.prepare<[string, number], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE device_key = ? ${newest}`,
  );
  const tokens = db.prepare<[string, number], OtpRow>(`SELECT ${OTP_COLUMNS} FROM otp WHERE client_id = ? ${newest}`);
  const requests = db.prepare<[string, number], StoredRequest>(
    `SELECT ${REQUEST_COLUMNS} FROM request WHERE device_key = ? ${newest}`,
  );
  const events = db.prepare<[string, number], { line: string }>(
    `SELECT line FROM device_event JOIN audit USING (seq) WHERE device_key = ? ORDER BY seq DESC LIMIT ?`,
  );
  return {
    deviceHistory: ({ id, key }: Pick<DeviceRow, 'id' | 'key'>, limit: number): DeviceHistory => ({
      certificates: certificates.all(key, limit).map(toCertificateRow),
      tokens: tokens.all(id, limit),
      requests: requests.all(key, limit).map(toRequestRow),
      events: events.all(key, limit).map(toRecord),
    }),
  };
}

/** The writes of devices. */
export function deviceWrites(db: Db) {
  const byId = db.prepare<[string], StoredDevice>(`SELECT ${DEVICE_COLUMNS} FROM device WHERE id = ?`);
  const insert = db.prepare<[WrittenDevice]>(INSERT_DEVICE);
  const update = db.prepare<[WrittenDevice]>(UPDATE_DEVICE);
  const remove = db.prepare<[string], { id: string }>('DELETE FROM device WHERE key = ? RETURNING id');
  const forget = db.prepare<[string]>('DELETE FROM device_event WHERE device_key = ?');

  const put = (entry: DeviceEntry, mode: 'create' | 'upsert'): Entered => {
    const { row, events } = entry;
    if (insert.run(toWrittenDevice(row)).changes === 1)
      return { result: 'created', events: events.map((event) => ({ event, device: row.key })) };
    const before = byId.get(row.id);
    if (mode === 'create' || before === undefined) return { result: 'known', events: [] };
    const changed = upserted(before, entry);
    update.run(toWrittenDevice(changed));
    return { result: 'changed', events: upsertedEvents(entry, changed) };
  };

  return {
    putDevices(entries: readonly DeviceEntry[], mode: 'create' | 'upsert'): Outcome<readonly EntryResult[]> {
      const entered = entries.map((entry) => put(entry, mode));
      return {
        value: entered.map(({ result }) => result),
        events: [],
        ofDevices: entered.flatMap(({ events }) => events),
      };
    },
    changeDevice(
      id: string,
      change: DeviceChange,
      now: number,
      events: readonly AuditEvent[],
    ): Outcome<DeviceRow | undefined> {
      const before = byId.get(id);
      if (before === undefined) return undone(undefined);
      const row: DeviceRow = { ...toDeviceRow(before), ...change, changed_at: now };
      update.run(toWrittenDevice(row));
      return done(row, events, row.key);
    },
    deleteDevice(key: string, events: readonly AuditEvent[]): Outcome<boolean> {
      if (remove.get(key) === undefined) return undone(false);
      forget.run(key);
      return done(true, events);
    },
    auditDevice: (key: string, events: readonly AuditEvent[]): Outcome<undefined> => done(undefined, events, key),
  };
}
