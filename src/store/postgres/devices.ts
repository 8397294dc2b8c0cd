import type { AuditEvent } from '../../audit/event.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
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
import { CERTIFICATE_COLUMNS, type StoredCertificate, toCertificateRow } from '../rows/certificate.ts';
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
import { OTP_COLUMNS } from '../rows/otp.ts';
import { REQUEST_COLUMNS, type StoredRequest, toRequestRow } from '../rows/request.ts';
import { given, listing } from './listing.ts';
import type { Queries } from './queries.ts';

/** What a selection asks of a row. */
function conditions({ id, ca, enabled }: DeviceSelection): readonly string[] {
  return [
    ...given([
      { value: id, sql: 'id = @id' },
      { value: ca, sql: 'ca = @ca' },
    ]),
    ...(enabled === undefined ? [] : [enabled ? 'enabled = 1' : 'enabled = 0']),
  ];
}

/** The reads of devices. */
export function deviceReads(db: Queries) {
  const list = listing<StoredDevice>(db, { name: 'device', table: 'device', columns: DEVICE_COLUMNS });
  const byId = db.prepare<[string], StoredDevice>(`SELECT ${DEVICE_COLUMNS} FROM device WHERE id = ?`);
  const mayCome = '(ca IS NULL OR ca = @ca)';
  const find = <Parameters extends object>(condition: string) =>
    db.prepare<Parameters, StoredDevice>(
      `SELECT ${DEVICE_COLUMNS} FROM device WHERE ${condition} AND ${mayCome} ORDER BY position LIMIT ${FOUND}`,
    );
  const byKey = find<{ key: string; ca: string }>('key = @key');
  const byIdAndCa = find<{ id: string; ca: string }>('id = @id');
  const byMatch = find<{ keys: readonly string[]; ca: string }>('match_key = ANY(@keys)');
  return {
    async getDevice(id: string): Promise<DeviceRow | undefined> {
      const stored = await byId.get(id);
      return stored === undefined ? undefined : toDeviceRow(stored);
    },
    async findDevices(query: DeviceQuery, ca: string): Promise<readonly DeviceRow[]> {
      if ('key' in query) return (await byKey.all({ key: query.key, ca })).map(toDeviceRow);
      if ('id' in query) return (await byIdAndCa.all({ id: query.id, ca })).map(toDeviceRow);
      return (await byMatch.all({ keys: query.match_keys, ca })).map(toDeviceRow);
    },
    listDevices: (filter: DeviceFilter): Promise<Page<DeviceRow>> =>
      list(conditions(filter), filter, filter, toDeviceRow),
    async listDeviceAttributes(selection: DeviceSelection): Promise<readonly string[]> {
      const where = conditions(selection);
      const names = await db
        .prepare<object, { name: string }>(
          `SELECT DISTINCT attribute.name COLLATE "C" AS name FROM device, json_object_keys(device.attributes::json) AS attribute (name)
           ${where.length === 0 ? '' : `WHERE ${where.map((sql) => `device.${sql}`).join(' AND ')}`} ORDER BY name`,
        )
        .all(selection);
      return names.map(({ name }) => name);
    },
    ...historyReads(db),
  };
}

function historyReads(db: Queries) {
  const newest = 'ORDER BY position DESC LIMIT ?';
  const certificates = db.prepare<[string, number], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE device_key = ? ${newest}`,
  );
  const tokens = db.prepare<[string, number], OtpRow>(`SELECT ${OTP_COLUMNS} FROM otp WHERE client_id = ? ${newest}`);
  const requests = db.prepare<[string, number], StoredRequest>(
    `SELECT ${REQUEST_COLUMNS} FROM request WHERE device_key = ? ${newest}`,
  );
  const events = db.prepare<[string, number], { line: string }>(
    `SELECT line FROM device_event JOIN audit USING (position) WHERE device_key = ? ORDER BY position DESC LIMIT ?`,
  );
  return {
    async deviceHistory({ id, key }: Pick<DeviceRow, 'id' | 'key'>, limit: number): Promise<DeviceHistory> {
      const [ofDevice, made, asked, told] = await Promise.all([
        certificates.all(key, limit),
        tokens.all(id, limit),
        requests.all(key, limit),
        events.all(key, limit),
      ]);
      return {
        certificates: ofDevice.map(toCertificateRow),
        tokens: made,
        requests: asked.map(toRequestRow),
        events: told.map(toRecord),
      };
    },
  };
}

/** The writes of devices. */
export function deviceWrites(db: Queries) {
  const byId = db.prepare<[string], StoredDevice>(`SELECT ${DEVICE_COLUMNS} FROM device WHERE id = ? FOR UPDATE`);
  const insert = db.prepare<WrittenDevice>(INSERT_DEVICE);
  const update = db.prepare<WrittenDevice>(UPDATE_DEVICE);
  const remove = db.prepare<[string], { id: string }>('DELETE FROM device WHERE key = ? RETURNING id');
  const forget = db.prepare<[string]>('DELETE FROM device_event WHERE device_key = ?');

  const put = async (entry: DeviceEntry, mode: 'create' | 'upsert'): Promise<Entered> => {
    const { row, events } = entry;
    if ((await insert.run(toWrittenDevice(row))) === 1)
      return { result: 'created', events: events.map((event) => ({ event, device: row.key })) };
    const before = mode === 'create' ? undefined : await byId.get(row.id);
    if (before === undefined) return { result: 'known', events: [] };
    const changed = upserted(before, entry);
    await update.run(toWrittenDevice(changed));
    return { result: 'changed', events: upsertedEvents(entry, changed) };
  };

  return {
    async putDevices(
      entries: readonly DeviceEntry[],
      mode: 'create' | 'upsert',
    ): Promise<Outcome<readonly EntryResult[]>> {
      // One after the other on the server as they are sent; but what comes twice has to find the first.
      const entered: Entered[] = [];
      for (const entry of entries) entered.push(await put(entry, mode));
      return {
        value: entered.map(({ result }) => result),
        events: [],
        ofDevices: entered.flatMap(({ events }) => events),
      };
    },
    async changeDevice(
      id: string,
      change: DeviceChange,
      now: number,
      events: readonly AuditEvent[],
    ): Promise<Outcome<DeviceRow | undefined>> {
      const before = await byId.get(id);
      if (before === undefined) return undone(undefined);
      const row: DeviceRow = { ...toDeviceRow(before), ...change, changed_at: now };
      await update.run(toWrittenDevice(row));
      return done(row, events, row.key);
    },
    async deleteDevice(key: string, events: readonly AuditEvent[]): Promise<Outcome<boolean>> {
      if ((await remove.get(key)) === undefined) return undone(false);
      await forget.run(key);
      return done(true, events);
    },
    auditDevice: (key: string, events: readonly AuditEvent[]): Promise<Outcome<undefined>> =>
      Promise.resolve(done(undefined, events, key)),
  };
}
