import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { deviceMatchKey } from '../../../src/store/device-match.ts';
import type { DeviceChange, DeviceFilter, DeviceRow } from '../../../src/store/device-store.ts';
import { deviceOf } from '../../support/devices.ts';
import type { Store } from '../../../src/store/store.ts';
import { certificateRow, deviceRow, event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';

const NOW = T0 + 1000;

async function enter(store: Store, ...rows: readonly DeviceRow[]): Promise<void> {
  const entries = rows.map((row) => ({ row, events: [event('device.created', { detail: row.id })] }));
  expect(await store.putDevices(entries, 'create')).toEqual(rows.map((row) => ({ result: 'created', row })));
}

const ids = async (store: Store, filter: Partial<DeviceFilter> = {}): Promise<string[]> =>
  (await store.listDevices({ limit: 100, ...filter })).items.map(({ id }) => id);

/** What keeps a device from a certificate of the CA `devices` at {@link NOW}. */
const REFUSED: readonly [string, Partial<DeviceRow>][] = [
  ['disabled', { enabled: false }],
  ['expired', { not_after: NOW - 1 }],
  ['expiring this millisecond', { not_after: NOW }],
  ["another CA's", { ca: 'lab' }],
];

export function deviceStoreContract(newDatabase: NewDatabase): void {
  describe('DeviceStore', () => {
    test('a device comes back as it was entered; a known id is refused', async () => {
      const store = await newDatabase().open();
      const row = deviceRow({
        ca: 'lab',
        enabled: false,
        not_after: T0 + 5,
        note: 'a note',
        match: { issuer_spki_sha256: 'ab', serial_number: '4711' },
        attributes: { site: 'Berlin', __proto__x: 'y' },
      });
      await enter(store, row);
      expect((await store.getDevices('device-1'))[0]).toEqual(row);
      expect((await store.getDevices('device-2'))[0]).toBeUndefined();
      const other = { row: deviceRow({ ca: 'lab', note: 'another' }), events: [event('device.created')] };
      const fresh = { row: deviceRow({ id: 'device-2' }), events: [event('device.created')] };
      expect(await store.putDevices([other, fresh], 'create')).toEqual([
        { result: 'known' },
        { result: 'created', row: fresh.row },
      ]);
      expect((await store.getDevices('device-1'))[0]).toEqual(row);
      expect(await auditTypes(store)).toEqual(['device.created', 'device.created']);
    });

    test('an upsert changes only the given fields of a known device, which stays the same device', async () => {
      const store = await newDatabase().open();
      const row = deviceRow({
        ca: 'lab',
        enabled: false,
        not_after: T0 + 5,
        note: 'a note',
        match: { issuer_spki_sha256: 'ab', serial_number: '4711' },
        attributes: { site: 'Berlin', rack: '7' },
      });
      await enter(store, row);
      const upsert = async (change: DeviceChange | undefined, merges: boolean, at: number) => {
        const given = deviceRow({ ...change, changed_at: at });
        const events = [event('device.created', { detail: 'upsert' })];
        const entry = { row: given, ...(change && { change }), merges, events };
        expect(await store.putDevices([entry], 'upsert')).toMatchObject([{ result: 'changed' }]);
        return deviceOf(store, 'device-1');
      };
      expect(await upsert(undefined, false, NOW)).toEqual({ ...row, changed_at: NOW });
      expect(await upsert({ note: 'new' }, true, NOW + 1)).toEqual({ ...row, note: 'new', changed_at: NOW + 1 });
      const cells = { match: { issuer_spki_sha256: 'cd' }, attributes: { site: 'Bonn' } };
      const merged = {
        match: { issuer_spki_sha256: 'cd', serial_number: '4711' },
        attributes: { site: 'Bonn', rack: '7' },
      };
      expect(await upsert(cells, true, NOW)).toMatchObject(merged);
      expect((await store.findDevicesByCertificate('00', [deviceMatchKey(merged.match)], 'lab')).matching).toHaveLength(
        1,
      );
      expect(await upsert(cells, false, NOW)).toEqual({ ...row, ...cells, note: 'new', changed_at: NOW });
      expect((await store.findDevicesByCertificate('00', [deviceMatchKey(cells.match)], 'lab')).matching).toHaveLength(
        1,
      );
      expect(await upsert({ match: null, note: null, enabled: true }, true, NOW)).toMatchObject({
        ...{ match: null, note: null, enabled: true, key: row.key },
      });
      expect(await store.putDevices([{ row: deviceRow({ id: 'new' }), events: [] }], 'upsert')).toMatchObject([
        { result: 'created' },
      ]);
      const changed = (await store.listAudit({ limit: 9, type: 'device.changed' })).items;
      expect(changed.map(({ ca }) => ca)).toEqual(Array.from({ length: 5 }, () => 'lab'));
      expect((await store.deviceHistory(row, 9)).events).toHaveLength(6);
    });

    test('a change leaves what it does not name', async () => {
      const store = await newDatabase().open();
      const row = deviceRow({ note: 'a note', attributes: { site: 'Berlin' } });
      await enter(store, row);
      const changed = { ...row, enabled: false, changed_at: NOW };
      expect(await store.changeDevice(row, { enabled: false }, NOW, [event('device.changed')])).toEqual(changed);
      expect((await store.getDevices('device-1'))[0]).toEqual(changed);
      expect(
        await store.changeDevice(deviceRow({ id: 'device-9' }), {}, NOW, [event('device.changed')]),
      ).toBeUndefined();
      expect(await auditTypes(store)).toEqual(['device.created', 'device.changed']);
    });

    test('an ID exists once without a label and once for each; a label has its own before the one without', async () => {
      const store = await newDatabase().open();
      const match = { issuer_spki_sha256: 'ab' };
      const [free, lab, guests] = [null, 'lab', 'guests'].map((ca) => deviceRow({ id: 'x', ca, match }));
      if (free === undefined || lab === undefined || guests === undefined) throw new Error('no rows');
      // In every order of registration.
      await enter(store, lab, free, guests);
      for (const row of [free, lab])
        expect(await store.putDevices([{ row: deviceRow({ ...row, key: 'another' }), events: [] }], 'create')).toEqual([
          { result: 'known' },
        ]);
      expect(await store.getDevices('x')).toEqual([free, guests, lab]);
      expect(await ids(store, { id: 'x' })).toEqual(['x', 'x', 'x']);
      for (const [label, row] of [
        ['lab', lab],
        ['guests', guests],
        ['devices', free],
      ] as const) {
        expect(await store.findDevices({ id: 'x' }, label)).toEqual([row]);
        const { matching } = await store.findDevicesByCertificate('00', [deviceMatchKey(match)], label);
        expect(matching).toEqual([row]);
      }
      expect(await store.changeDevice(guests, { ca: 'lab' }, NOW, [])).toBe('known');
      expect(await store.changeDevice(guests, { ca: null }, NOW, [])).toBe('known');
      await store.auditDevice(lab.key, []);
      await store.deleteDevice(free.key, []);
      expect(await store.findDevices({ id: 'x' }, 'devices')).toEqual([]);
      expect(await store.changeDevice(guests, { ca: null }, NOW, [])).toMatchObject({ key: guests.key, ca: null });
      expect(await store.findDevices({ id: 'x' }, 'devices')).toMatchObject([{ key: guests.key }]);
    });

    test('an upsert without a label changes the device without, or the only one, and else none', async () => {
      const store = await newDatabase().open();
      const upsert = (change: DeviceChange) =>
        store.putDevices([{ row: deviceRow({ id: 'x', ...change }), change, events: [] }], 'upsert');
      await enter(store, deviceRow({ id: 'x', ca: 'lab' }));
      expect(await upsert({ note: '1' })).toMatchObject([{ result: 'changed', row: { ca: 'lab', note: '1' } }]);
      expect(await upsert({ ca: 'guests' })).toMatchObject([{ result: 'created', row: { ca: 'guests' } }]);
      expect(await upsert({ note: '2' })).toEqual([{ result: 'ambiguous' }]);
      expect(await upsert({ ca: null })).toMatchObject([{ result: 'created', row: { ca: null } }]);
      expect(await upsert({ note: '3' })).toMatchObject([{ result: 'changed', row: { ca: null, note: '3' } }]);
      expect(await upsert({ ca: 'lab', note: '4' })).toMatchObject([
        { result: 'changed', row: { ca: 'lab', note: '4' } },
      ]);
      expect((await store.getDevices('x')).map(({ note }) => note)).toEqual(['3', null, '4']);
    });

    test('GET /admin/devices: each filter, both orders, pages', async () => {
      const store = await newDatabase().open();
      await enter(
        store,
        deviceRow({ id: 'a', ca: 'lab', attributes: { site: 'x', b: '' } }),
        deviceRow({ id: 'b', enabled: false, attributes: { rack: '1' } }),
        deviceRow({ id: 'c', ca: 'lab', enabled: false }),
      );
      expect(await ids(store)).toEqual(['a', 'b', 'c']);
      expect(await ids(store, { order: 'desc' })).toEqual(['c', 'b', 'a']);
      expect(await ids(store, { ca: 'lab' })).toEqual(['a', 'c']);
      expect(await ids(store, { enabled: false, order: 'desc' })).toEqual(['c', 'b']);
      expect(await ids(store, { id: 'a' })).toEqual(['a']);
      for (const [order, expected] of [
        ['asc', 'c'],
        ['desc', 'a'],
      ] as const) {
        const page = await store.listDevices({ limit: 2, order });
        expect(await ids(store, { order, cursor: page.next_cursor ?? undefined })).toEqual([expected]);
      }
      expect(await store.listDeviceAttributes({})).toEqual(['b', 'rack', 'site']);
      expect(await store.listDeviceAttributes({ ca: 'lab' })).toEqual(['b', 'site']);
    });

    test('it knows the expiry of its newest certificate that is not revoked, and its last contact with any', async () => {
      const store = await newDatabase().open();
      await enter(store, deviceRow({ key: 'k', id: 'a' }), deviceRow({ key: 'l', id: 'b' }));
      const absent = { certificate_not_after: null, last_used_at: null };
      const uses = async (labels?: readonly string[]) => [...(await store.usesOfDevices(['k', 'l'], labels)).values()];
      for (const key of ['k', 'l']) expect(await uses()).toContainEqual({ key, ...absent });
      const own = { device: 'a', device_key: 'k' };
      const first = await issue(store, { ...own, not_after: T0 + 500 });
      await issue(store, { ...own, not_after: T0 + 400, label: 'lab' });
      const last = await issue(store, { ...own, not_after: T0 + 900 });
      const times = { first_used_at: T0 + 7, last_used_at: T0 + 8, connected_at: T0 + 7 };
      const use = { ...times, serial: first.serial, fingerprints: [first.fingerprint_sha256], chains: [] };
      const connection = { tls_version: 'TLSv1.3', names_label: true } as const;
      await store.recordUses({ uses: [{ ...use, ...connection }], issued: [], renewalInfo: [] });
      expect(await uses()).toContainEqual({ key: 'k', certificate_not_after: T0 + 900, last_used_at: T0 + 8 });
      const { ca, serial } = last;
      const revocation = { ca, serial, revoked_at: T0 + 9, reason: 'superseded', invalidity_date: null };
      await store.revokeCertificate(revocation, []);
      expect(await uses()).toContainEqual({ key: 'k', certificate_not_after: T0 + 400, last_used_at: T0 + 8 });
      expect(await uses(['devices'])).toContainEqual({
        key: 'k',
        certificate_not_after: T0 + 500,
        last_used_at: T0 + 8,
      });
      expect(await uses(['lab'])).toContainEqual({ key: 'k', certificate_not_after: T0 + 400, last_used_at: null });
    });

    test('a search finds a part of an ID, a note or a value of a match, ignoring case, within labels', async () => {
      const store = await newDatabase().open();
      const match = { issuer_spki_sha256: 'ab', serial_number: 'SN-4711', common_name: 'A "B" \\ C' };
      await enter(
        store,
        deviceRow({ id: 'Press-1', ca: 'lab', attributes: { site: 'x' } }),
        deviceRow({ id: 'oven', note: 'next to press 100%' }),
        deviceRow({ id: 'gate', match }),
      );
      expect(await ids(store, { search: 'pReSs' })).toEqual(['Press-1', 'oven']);
      expect(await ids(store, { search: 'press', labels: ['lab'] })).toEqual(['Press-1']);
      expect(await ids(store, { search: 'press', ca: 'lab', enabled: true, order: 'desc' })).toEqual(['Press-1']);
      expect(await ids(store, { search: 'n-471' })).toEqual(['gate']);
      expect(await ids(store, { search: '"b" \\' })).toEqual(['gate']);
      expect(await ids(store, { search: '0%' })).toEqual(['oven']);
      expect(await ids(store, { search: 'serial_number' })).toEqual([]);
      expect(await store.listDeviceAttributes({ search: 'press-1' })).toEqual(['site']);
    });

    test('a requester is looked for by key, by id, by match, among those that may come to the CA', async () => {
      const store = await newDatabase().open();
      const [first, second] = [{ issuer_spki_sha256: 'ab' }, { fingerprint_sha256: 'cd' }];
      const [k1, k2] = [deviceMatchKey(first), deviceMatchKey(second)];
      const a = deviceRow({ id: 'a', match: first });
      const b = deviceRow({ id: 'b', match: first, enabled: false });
      const c = deviceRow({ id: 'c', ca: 'lab', match: second });
      await enter(store, a, b, c);
      expect(await store.findDevices({ key: a.key }, 'devices')).toEqual([a]);
      expect(await store.findDevices({ id: 'c' }, 'lab')).toEqual([c]);
      expect(await store.findDevices({ id: 'c' }, 'devices')).toEqual([]);
      const matching = async (keys: readonly string[]): Promise<unknown> =>
        (await store.findDevicesByCertificate('00', keys, 'devices')).matching;
      expect(await matching(['k0', k1, k2])).toEqual([a, b]);
      expect(await matching([k2])).toEqual([]);
      expect(await matching([])).toEqual([]);
    });

    test('the records of certificates that belong to a device are found by their serial number', async () => {
      const store = await newDatabase().open();
      const device_key = randomUUID();
      const { serial } = await issue(store, { ca: 'devices', device_key });
      const other = await issue(store, { ca: 'lab', device_key, required_device: device_key, serial });
      await issue(store, { ca: 'guests', serial });
      const { recorded, matching } = await store.findDevicesByCertificate(serial, [], 'devices');
      expect(recorded).toHaveLength(2);
      expect(recorded).toContainEqual({ der: other.der, device_key, required_device: device_key });
      expect(matching).toEqual([]);
    });

    test('a device that is limited to a label comes to that one, and to no other of its CA', async () => {
      const store = await newDatabase().open();
      const row = deviceRow({ ca: 'guests' });
      await enter(store, row);
      const at = (label: string | null) => reservation({ ca: 'devices', label, device_key: row.key });
      expect(await store.reserve(at(null), [])).toBe('device-refused');
      expect(await store.reserve(at('staff'), [])).toBe('device-refused');
      const intent = at('guests');
      expect(await store.reserve(intent, [])).toBe('reserved');
      await store.recordCertificate(certificateRow(intent, { device: row.id, device_key: row.key }), []);
    });

    test.each(REFUSED)('nothing is reserved for a device that is %s', async (_, more) => {
      const store = await newDatabase().open();
      const row = deviceRow(more);
      await enter(store, row);
      const otp = otpRow();
      await store.insertOtp(otp, []);
      const intent = reservation({ device_key: row.key, otp_id: otp.id });
      expect(await store.reserve(intent, [event('request.received')])).toBe('device-refused');
      expect(await store.openReservations()).toEqual([]);
      expect((await store.getOtp(otp.id))?.uses).toBe(0);
      expect(await auditTypes(store)).toEqual(['device.created']);
    });

    test.each(REFUSED)('nothing is queued, submitted or approved for a device that is %s', async (_, more) => {
      const store = await newDatabase().open();
      const row = deviceRow();
      await enter(store, row);
      const waiting = requestRow({ device: row.id, device_key: row.key, created_at: NOW });
      expect(await store.queueRequest(waiting, null, [])).toBe('queued');
      await store.changeDevice(row, more, NOW, []);
      const late = requestRow({ device: row.id, device_key: row.key, created_at: NOW });
      expect(await store.queueRequest(late, null, [])).toBe('device-refused');
      expect(await store.submitRequest(late, null, reservation({ request_id: late.id }), [])).toBe('device-refused');
      const approval = { id: waiting.id, status: 'approved', reason: null, decided_at: NOW } as const;
      expect(await store.decideRequest(approval, [event('request.approved')])).toBe('device-refused');
      expect((await store.getRequest(waiting.id))?.status).toBe('pending');
      expect(await store.decideRequest({ ...approval, status: 'rejected', reason: 'no' }, [])).toBe('decided');
      expect(await store.decideRequest(approval, [])).toBe('not-pending');
    });

    test('an approved request is not claimed once its device is disabled', async () => {
      const store = await newDatabase().open();
      const row = deviceRow();
      await enter(store, row);
      const waiting = requestRow({ device: row.id, device_key: row.key, created_at: NOW });
      await store.queueRequest(waiting, null, []);
      await store.decideRequest({ id: waiting.id, status: 'approved', reason: null, decided_at: NOW }, []);
      await store.changeDevice(row, { enabled: false }, NOW, []);
      const intent = reservation({ request_id: waiting.id, device_key: row.key });
      expect(await store.claimRequest(intent, [])).toBe('device-refused');
      await store.changeDevice(row, { enabled: true }, NOW, []);
      expect(await store.claimRequest(intent, [])).toBe('reserved');
    });

    test.each([
      ['disabled', (store: Store, row: DeviceRow) => store.changeDevice(row, { enabled: false }, NOW, [])],
      ['deleted', (store: Store, row: DeviceRow) => store.deleteDevice(row.key, [])],
    ])('no certificate is recorded for a device that was %s while the CA signed', async (_, end) => {
      const store = await newDatabase().open();
      const row = deviceRow();
      await enter(store, row);
      const intent = reservation({ device_key: row.key });
      expect(await store.reserve(intent, [])).toBe('reserved');
      await end(store, row);
      const certificate = certificateRow(intent, { device: row.id, device_key: row.key });
      await expect(store.recordCertificate(certificate, [])).rejects.toMatchObject({ code: 'DEVICE_NOT_REGISTERED' });
      expect(await store.getCertificates(certificate.serial)).toEqual([]);
      expect(await store.releaseReservation(intent.request_id, [])).toBe(true);
    });

    test.each(REFUSED)(
      'where no device is required, a requester whose device is %s gets its certificate',
      async (_, more) => {
        const store = await newDatabase().open();
        const row = deviceRow(more);
        await enter(store, row);
        const of = { device_key: row.key, required_device: null };
        const intent = reservation(of);
        expect(await store.reserve(intent, [event('request.received')])).toBe('reserved');
        await store.recordCertificate(certificateRow(intent, { ...of, device: row.id }), [event('certificate.issued')]);
        const waiting = requestRow({ ...of, device: row.id, created_at: NOW });
        expect(await store.queueRequest(waiting, null, [event('request.queued')])).toBe('queued');
        const approval = { id: waiting.id, status: 'approved', reason: null, decided_at: NOW } as const;
        expect(await store.decideRequest(approval, [event('request.approved')])).toBe('decided');
        expect(await store.claimRequest(reservation({ ...of, request_id: waiting.id }), [])).toBe('reserved');
        const history = await store.deviceHistory(row, 10);
        expect(history).toMatchObject({ certificates: [{ ...of, device: row.id }], requests: [{ id: waiting.id }] });
        expect(history.events.map(({ type }) => type)).toEqual([
          'request.approved',
          'request.queued',
          'certificate.issued',
          'request.received',
          'device.created',
        ]);
      },
    );

    test('a failed authentication is in the history of the device that the requester claimed to be', async () => {
      const store = await newDatabase().open();
      const row = deviceRow();
      const limited = deviceRow({ id: 'limited', ca: 'lab' });
      await enter(store, row, limited);
      const of = { device: row.id, device_key: row.key };
      const intent = reservation(of);
      await store.reserve(intent, []);
      await store.recordCertificate(certificateRow(intent, of), []);
      const failed = (type: 'auth.otp' | 'auth.mtls' | 'auth.cmc' | 'auth.admin', more: object) =>
        event(type, { outcome: 'failure', ca: 'devices', ...more });
      const policy = { max_failures: 0, failure_window: 60, lockout_duration: 60 };
      await store.recordFailure(['username:device-1'], policy, NOW, [failed('auth.otp', { subject: 'device-1' })]);
      await store.audit([
        failed('auth.cmc', { subject: 'device-1' }),
        failed('auth.mtls', { subject: 'CN=a', serial: intent.serial }),
        failed('auth.cmc', { serial: intent.serial }),
      ]);
      // None of these is a claim to be the device.
      await store.audit([
        failed('auth.mtls', { subject: 'device-1' }),
        failed('auth.otp', { subject: 'device-11' }),
        failed('auth.otp', { subject: 'device\u0000-1' }),
        failed('auth.otp', {}),
        failed('auth.admin', { subject: 'device-1' }),
        event('auth.otp', { subject: 'device-1' }),
        event('admin.access', { subject: 'device-1', outcome: 'failure' }),
      ]);
      const types = async (of: DeviceRow) => (await store.deviceHistory(of, 99)).events.map(({ type }) => type);
      expect(await types(row)).toEqual([
        'auth.cmc',
        'auth.mtls',
        'auth.cmc',
        'lockout.started',
        'auth.otp',
        'device.created',
      ]);
      const at = (ca: string) => store.audit([failed('auth.otp', { subject: 'limited', ca })]);
      await at('devices');
      expect(await types(limited)).toEqual(['device.created']);
      await at('lab');
      expect(await types(limited)).toEqual(['auth.otp', 'device.created']);
    });

    test('the history of a device: its certificates, tokens, requests and audit records; none of an earlier one of its id', async () => {
      const store = await newDatabase().open();
      const row = deviceRow();
      await enter(store, row, deviceRow({ id: 'device-2' }));
      const intent = reservation({ device_key: row.key });
      await store.reserve(intent, [event('request.received', { request_id: intent.request_id })]);
      const certificate = certificateRow(intent, { device: row.id, device_key: row.key });
      await store.recordCertificate(certificate, [event('certificate.issued')]);
      const waiting = requestRow({ device: row.id, device_key: row.key, created_at: NOW });
      await store.queueRequest(waiting, null, [event('request.queued')]);
      const token = otpRow({ client_id: row.id });
      await store.insertOtp(token, [event('otp.created')]);
      await store.auditDevice(row.key, [event('certificate.denied')]);
      const types = (of: { readonly events: readonly { readonly type: string }[] }) =>
        of.events.map(({ type }) => type);
      const history = await store.deviceHistory(row, 10);
      expect(history).toMatchObject({ certificates: [certificate], tokens: [token], requests: [waiting] });
      expect(types(history)).toEqual([
        'certificate.denied',
        'request.queued',
        'certificate.issued',
        'request.received',
        'device.created',
      ]);
      expect(types(await store.deviceHistory(row, 2))).toEqual(['certificate.denied', 'request.queued']);
      const byDevice = await store.listCertificates({ limit: 9, device_key: row.key }, NOW);
      expect(byDevice.items).toMatchObject([
        { ca: certificate.ca, serial: certificate.serial, device: certificate.device },
      ]);
      // The revocation of its certificate belongs to its history, whichever call revoked it.
      const revocation = { ca: certificate.ca, serial: certificate.serial, revoked_at: NOW, invalidity_date: null };
      await store.revokeCertificate({ ...revocation, reason: 'superseded' }, [event('certificate.revoked')]);
      expect(types(await store.deviceHistory(row, 1))).toEqual(['certificate.revoked']);
      expect(await store.deleteDevice(row.key, [event('device.deleted')])).toBe(true);
      expect(await store.deleteDevice(row.key, [event('device.deleted')])).toBe(false);
      const again = deviceRow();
      await enter(store, again);
      const later = await store.deviceHistory(again, 10);
      expect(later).toMatchObject({ certificates: [], requests: [], tokens: [token] });
      expect(types(later)).toEqual(['device.created']);
      expect((await store.listCertificates({ limit: 9, device: row.id }, NOW)).items).toMatchObject([
        { serial: certificate.serial },
      ]);
    });

    test('of many devices entered at once each is one', async () => {
      const store = await newDatabase().open();
      const entries = Array.from({ length: 50 }, () => ({
        row: deviceRow({ id: `same-${randomBytes(1).readUInt8() % 2}` }),
        events: [],
      }));
      const results = await Promise.all(entries.map((entry) => store.putDevices([entry], 'create')));
      const distinct = new Set(entries.map(({ row }) => row.id)).size;
      expect(results.flat().filter(({ result }) => result === 'created')).toHaveLength(distinct);
    });
  });
}
