import { describe, expect, test } from 'vitest';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import type { FleetRules } from '../../../src/store/holder-derivation.ts';
import type { RejectedRenewal } from '../../../src/store/holder-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { certificateRow, deviceRow, requestRow, reservation, T0 } from '../rows.ts';
import type { NewDatabase } from './support.ts';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

const RULES: FleetRules = {
  forget: 90 * DAY,
  expected: (label) => label !== 'one-time',
  requiresDevices: (label) => label === 'registered',
  authorities: new Set(['ra']),
  // The last day, except its last hour.
  window: ({ not_after }) => ({ start: not_after - DAY, end: not_after - HOUR }),
  reports: true,
};

type Without<T> = T extends unknown ? Omit<T, 'at' | 'code' | 'message'> : never;
type Rejected = Without<RejectedRenewal>;

/** A store, and what happens to its certificates, each of ten days. */
class World {
  readonly store: Store;
  readonly rules: FleetRules;

  constructor(store: Store, rules = RULES) {
    this.store = store;
    this.rules = rules;
  }

  /** @param renewing the certificate that the request was sent with */
  async issue(at: number, more: Partial<CertificateRow> = {}, renewing?: CertificateRow): Promise<CertificateRow> {
    const { ca = 'devices', label = null, device_key = null } = more;
    const intent = reservation({ ca, label, device_key, required_device: null, created_at: at });
    const row = certificateRow(intent, { not_before: at, not_after: at + 10 * DAY, required_device: null, ...more });
    expect(await this.store.reserve(intent, [])).toBe('reserved');
    await this.store.recordCertificate(row, []);
    const issued = { with: renewing && { serial: renewing.serial }, renews: renewing !== undefined };
    await this.store.applyFleetChanges({ certificates: [{ ...row, issued }] }, this.rules, at);
    return row;
  }

  async use(row: CertificateRow, at: number, connected_at = at): Promise<void> {
    const times = { first_used_at: at, last_used_at: at, connected_at };
    const { serial, fingerprint_sha256 } = row;
    const use = { ...times, serial, fingerprints: [fingerprint_sha256], chains: [] };
    await this.store.recordUses({
      uses: [{ ...use, tls_version: 'TLSv1.3', names_label: true }],
      ...{ issued: [], renewalInfo: [] },
    });
  }

  reject(at: number, of: Rejected, code = 'SAN_MISMATCH'): Promise<boolean> {
    const rejection = { at, code, message: 'no', ...of };
    return this.store.applyFleetChanges({ rejections: [rejection] }, this.rules, at);
  }

  revoke(row: CertificateRow, at: number): Promise<unknown> {
    const { ca, serial } = row;
    const revocation = { ca, serial, revoked_at: at, reason: 'superseded', invalidity_date: null };
    return this.store.revokeCertificate(revocation, []).then(() => this.changed(row, at));
  }

  changed({ ca, serial }: CertificateRow, at: number): Promise<boolean> {
    return this.store.applyFleetChanges({ certificates: [{ ca, serial }] }, this.rules, at);
  }

  async holders(at: number) {
    while (await this.store.deriveDueHolders(this.rules, at));
    const { items } = await this.store.listHolders({ limit: 100 });
    const counted = Object.groupBy(items, ({ state, ca }) => `${ca ?? ''} ${state}`);
    const counts = (await this.store.countHolders()).map(({ label, state, n }) => [`${label} ${state}`, n]);
    // The counts agree with the list, whatever happened.
    expect(Object.fromEntries(counts)).toEqual(
      Object.fromEntries(Object.entries(counted).map(([key, list = []]) => [key, list.length])),
    );
    return items;
  }

  async states(at: number) {
    return (await this.holders(at)).map(({ state, since }) => [state, since]);
  }
}

type Case = readonly [name: string, run: (world: World) => Promise<unknown>, now: number, states: unknown];

const renewedAt = T0 + 9.5 * DAY;

const CASES: readonly Case[] = [
  ['is ok since the issuance', (w) => w.issue(T0), T0 + DAY, [['ok', T0]]],
  ['is due from the start of its window on', (w) => w.issue(T0), T0 + 9 * DAY, [['due', T0 + 9 * DAY]]],
  ['is late from the end of its window on', (w) => w.issue(T0), T0 + 10 * DAY - HOUR, [['late', T0 + 10 * DAY - HOUR]]],
  ['has expired after its expiry', (w) => w.issue(T0), T0 + 10 * DAY + 1, [['expired', T0 + 10 * DAY]]],
  ['is forgotten 90 days later', (w) => w.issue(T0), T0 + 100 * DAY + 1, []],
  [
    'is one holder with a later certificate of the same names, in any order and case',
    async (w) => {
      await w.issue(T0);
      await w.issue(renewedAt, { sans: ['DNS:DEVICE-1.example', 'IP:192.0.2.1'] });
    },
    renewedAt + MINUTE,
    [['ok', renewedAt]],
  ],
  [
    'is failing from the first rejection of a renewal on',
    async (w) => {
      const { serial } = await w.issue(T0);
      await w.reject(T0 + DAY, { certificate: { serial } });
      await w.reject(T0 + 2 * DAY, { certificate: { serial } });
    },
    T0 + 3 * DAY,
    [['failing', T0 + DAY]],
  ],
  [
    'is failing again if the certificates issued after the rejection are revoked, also since an earlier one',
    async (w) => {
      const first = await w.issue(T0);
      await w.reject(T0 + DAY, { certificate: { serial: first.serial } });
      const second = await w.issue(T0 + 2 * DAY, {}, first);
      await w.reject(T0 + 3 * DAY, { certificate: { serial: first.serial } });
      const third = await w.issue(T0 + 4 * DAY, {}, first);
      expect(await w.states(T0 + 4 * DAY)).toEqual([['ok', T0 + 4 * DAY]]);
      await w.revoke(third, T0 + 5 * DAY);
      expect(await w.states(T0 + 5 * DAY)).toEqual([['failing', T0 + 3 * DAY]]);
      await w.revoke(second, T0 + 6 * DAY);
    },
    T0 + 7 * DAY,
    [['failing', T0 + DAY]],
  ],
  [
    'is failing with an imported certificate that was issued before the rejection',
    async (w) => {
      const { serial } = await w.issue(T0);
      await w.reject(T0 + 2 * DAY, { certificate: { serial } });
      const imported = certificateRow(reservation({ created_at: T0 + DAY }), {
        ...{ issued_at: null, not_before: T0 + DAY, not_after: T0 + 12 * DAY, required_device: null },
      });
      expect(await w.store.importCertificate(imported, [])).toBe('imported');
      await w.changed(imported, T0 + 3 * DAY);
    },
    T0 + 4 * DAY,
    [['failing', T0 + 2 * DAY]],
  ],
  [
    'is no longer failing with a new certificate, and fails anew',
    async (w) => {
      const first = await w.issue(T0);
      await w.reject(T0 + DAY, { certificate: { serial: first.serial } });
      await w.issue(T0 + 2 * DAY, {}, first);
      expect(await w.states(T0 + 2 * DAY)).toEqual([['ok', T0 + 2 * DAY]]);
      await w.reject(T0 + 3 * DAY, { certificate: { serial: first.serial } });
    },
    T0 + 4 * DAY,
    [['failing', T0 + 3 * DAY]],
  ],
  [
    'is failing after a 401 for a certificate that the store recognizes, by its fingerprint only',
    async (w) => {
      const { serial, fingerprint_sha256 } = await w.issue(T0);
      await w.reject(T0 + 1, { certificate: { serial, fingerprints: ['00'] } }, 'CLIENT_CERTIFICATE_EXPIRED');
      expect(await w.states(T0 + 1)).toEqual([['ok', T0]]);
      await w.reject(T0 + 2, { certificate: { serial, fingerprints: [fingerprint_sha256] } });
    },
    T0 + 3,
    [['failing', T0 + 2]],
  ],
  [
    'has expired rather than failing',
    async (w) => {
      const { serial } = await w.issue(T0);
      await w.reject(T0 + 9 * DAY, { certificate: { serial } });
    },
    T0 + 11 * DAY,
    [['expired', T0 + 10 * DAY]],
  ],
  [
    'waits while a renewal is in the queue, and is failing if that expires',
    async (w) => {
      const row = await w.issue(T0);
      const id = 'queued';
      await w.store.queueRequest(requestRow({ id, operation: 'simplereenroll', created_at: T0 + DAY }), null, []);
      const queued = { queued: [{ request_id: id, certificate: { serial: row.serial } }] };
      await w.store.applyFleetChanges(queued, w.rules, T0 + DAY);
      expect(await w.states(T0 + DAY)).toEqual([['waiting', T0 + DAY]]);
      const approved = { id, status: 'approved', reason: null, decided_at: T0 + DAY + 5 } as const;
      expect(await w.store.decideRequest(approved, [])).toBe('decided');
      expect(await w.states(T0 + 2 * DAY)).toEqual([['waiting', T0 + DAY]]);
      await w.store.expireRequests({ pending_ttl: 1, retention: 9 * DAY }, T0 + 3 * DAY);
      await w.reject(T0 + 3 * DAY, { request_id: id, certificate: { serial: row.serial } }, 'REQUEST_CANCELED');
    },
    T0 + 3 * DAY,
    [['failing', T0 + 3 * DAY]],
  ],
  [
    'waits since the first of two queued renewals, until both are decided',
    async (w) => {
      const { serial } = await w.issue(T0);
      for (const [n, id] of ['one', 'two'].entries()) {
        await w.store.queueRequest(
          requestRow({ id, recognition: id, operation: 'simplereenroll', created_at: T0 + n * DAY }),
          ...([null, []] as const),
        );
        const queued = [{ request_id: id, certificate: { serial } }];
        await w.store.applyFleetChanges({ queued }, w.rules, T0 + n * DAY);
      }
      expect(await w.states(T0 + 2 * DAY)).toEqual([['waiting', T0]]);
      const rejected = { status: 'rejected', reason: 'no', decided_at: T0 + 2 * DAY } as const;
      await w.store.decideRequest({ id: 'two', ...rejected }, []);
      await w.issue(T0 + 3 * DAY);
      expect(await w.states(T0 + 3 * DAY)).toEqual([['waiting', T0]]);
      await w.store.decideRequest({ id: 'one', ...rejected }, []);
      await w.reject(T0 + 4 * DAY, { request_id: 'one', certificate: { serial } }, 'REQUEST_REJECTED');
      expect(await w.states(T0 + 4 * DAY)).toEqual([['failing', T0 + 4 * DAY]]);
      await w.reject(T0 + 5 * DAY, { request_id: 'two', certificate: { serial } }, 'REQUEST_CANCELED');
      expect(await w.holders(T0 + 5 * DAY)).toMatchObject([{ last_code: 'REQUEST_CANCELED' }]);
    },
    T0 + 5 * DAY,
    [['failing', T0 + 4 * DAY]],
  ],
  [
    'waits no longer once the request is gone, even if nobody says so',
    async (w) => {
      const row = await w.issue(T0);
      await w.store.queueRequest(requestRow({ id: 'gone', created_at: T0 + DAY }), null, []);
      const queued = { queued: [{ request_id: 'gone', certificate: { serial: row.serial } }] };
      await w.store.applyFleetChanges(queued, w.rules, T0 + DAY);
      await w.store.expireRequests({ pending_ttl: 1, retention: DAY }, T0 + 2 * DAY);
    },
    T0 + 2 * DAY,
    [['ok', T0]],
  ],
  [
    'is stuck if the certificate that was renewed is used over a connection of a minute or more later',
    async (w) => {
      const first = await w.issue(T0);
      await w.issue(renewedAt, {}, first);
      await w.use(first, renewedAt + 2 * HOUR, renewedAt + MINUTE - 1);
      expect(await w.states(renewedAt + 2 * HOUR)).toEqual([['ok', renewedAt]]);
      await w.use(first, renewedAt + 3 * HOUR);
      await w.use(first, renewedAt + 4 * HOUR);
    },
    renewedAt + 5 * HOUR,
    [['stuck', renewedAt + 4 * HOUR]],
  ],
  [
    'stays stuck since the first such connection',
    async (w) => {
      const first = await w.issue(T0);
      await w.issue(renewedAt, {}, first);
      await w.use(first, renewedAt + 3 * HOUR);
      expect(await w.states(renewedAt + 3 * HOUR)).toEqual([['stuck', renewedAt + 3 * HOUR]]);
      await w.use(first, renewedAt + 4 * HOUR);
    },
    renewedAt + 5 * HOUR,
    [['stuck', renewedAt + 3 * HOUR]],
  ],
  [
    'is not stuck once the new certificate authenticates',
    async (w) => {
      const first = await w.issue(T0);
      const second = await w.issue(renewedAt, {}, first);
      await w.use(first, renewedAt + 2 * HOUR);
      expect(await w.states(renewedAt + 2 * HOUR)).toEqual([['stuck', renewedAt + 2 * HOUR]]);
      await w.use(second, renewedAt + 3 * HOUR);
    },
    renewedAt + 3 * HOUR,
    [['ok', renewedAt]],
  ],
  [
    'is stuck after three renewals with one certificate, since the last',
    async (w) => {
      const first = await w.issue(T0);
      for (const n of [1, 2]) await w.issue(renewedAt + n, {}, first);
      expect(await w.states(renewedAt + 3)).toEqual([['ok', renewedAt + 2]]);
      await w.issue(renewedAt + 3, {}, first);
    },
    renewedAt + 4,
    [['stuck', renewedAt + 3]],
  ],
  [
    'is not stuck if a successor authenticated in between',
    async (w) => {
      const first = await w.issue(T0);
      const second = await w.issue(renewedAt + 1, {}, first);
      await w.use(second, renewedAt + 2);
      for (const n of [3, 4]) await w.issue(renewedAt + n, {}, first);
    },
    renewedAt + 5,
    [['ok', renewedAt + 4]],
  ],
  [
    'has the newest certificate that is not revoked',
    async (w) => {
      await w.issue(T0);
      await w.revoke(await w.issue(T0 + DAY), T0 + 2 * DAY);
    },
    T0 + 3 * DAY,
    [['ok', T0]],
  ],
  ['is in no list with revoked certificates alone', async (w) => w.revoke(await w.issue(T0), T0 + 1), T0 + DAY, []],
  [
    'is in no list if all unexpired certificates are revoked',
    async (w) => {
      await w.issue(T0);
      await w.revoke(await w.issue(T0 + 9 * DAY), T0 + 9 * DAY);
    },
    T0 + 11 * DAY,
    [],
  ],
  ['does not exist at a label that expects no renewals', (w) => w.issue(T0, { label: 'one-time' }), T0 + DAY, []],
  ['does not exist for the certificate of this server', (w) => w.issue(T0, { method: 'automatic' }), T0 + DAY, []],
  [
    'gives way to the holder of the other names that its certificate was renewed to',
    async (w) => {
      const first = await w.issue(T0);
      await w.issue(renewedAt, { subject: 'CN=renamed' }, first);
    },
    T0 + 11 * DAY,
    [['ok', renewedAt]],
  ],
  [
    'is another one at another label, and with another device',
    async (w) => {
      await w.issue(T0);
      await w.issue(T0 + 1, { label: 'lab' });
      await w.store.putDevices([{ row: deviceRow({ key: 'k' }), events: [] }], 'create');
      await w.issue(T0 + 2, { device: 'device-1', device_key: 'k' });
    },
    T0 + DAY,
    [
      ['ok', T0],
      ['ok', T0 + 1],
      ['ok', T0 + 2],
    ],
  ],
  [
    'is never for a device without a certificate, until it has one',
    async (w) => {
      // Another label has a device with this ID.
      await w.store.putDevices([{ row: deviceRow({ ca: 'guests' }), events: [] }], 'create');
      await w.store.putDevices([{ row: deviceRow({ key: 'k', created_at: T0 }), events: [] }], 'create');
      await w.store.applyFleetChanges({ devices: ['k'] }, w.rules, T0);
      expect(await w.holders(T0)).toMatchObject([
        { state: 'never', since: T0, ca: null, device: 'device-1', serial: null, sans: null, not_after: null },
      ]);
      await w.reject(T0 + 5, { device_key: 'k' }, 'OTP_INVALID');
      expect(await w.holders(T0 + 5)).toMatchObject([
        { state: 'never', last_code: 'OTP_INVALID', last_failed_at: T0 + 5 },
      ]);
      await w.issue(T0 + 9, { device: 'device-1', device_key: 'k' });
    },
    T0 + DAY,
    [['ok', T0 + 9]],
  ],
  [
    'is in no list at a label for devices only while its device is disabled',
    async (w) => {
      await w.store.putDevices([{ row: deviceRow({ key: 'k' }), events: [] }], 'create');
      await w.issue(T0, { label: 'registered', device: 'device-1', device_key: 'k' });
      expect(await w.states(T0)).toEqual([['ok', T0]]);
      await w.store.changeDevice({ key: 'k', id: 'device-1', ca: null }, { enabled: false }, T0, []);
      await w.store.applyFleetChanges({ devices: ['k'] }, w.rules, T0);
      expect(await w.states(T0)).toEqual([]);
      await w.store.changeDevice(
        { key: 'k', id: 'device-1', ca: null },
        { enabled: true, not_after: T0 + DAY },
        T0,
        [],
      );
      await w.store.applyFleetChanges({ devices: ['k'] }, w.rules, T0);
      expect(await w.states(T0)).toEqual([['ok', T0]]);
    },
    T0 + DAY,
    [],
  ],
];

export function holderStoreContract(newDatabase: NewDatabase): void {
  describe('HolderStore: a holder', () => {
    test.each(CASES)('%s', async (_, run, now, states) => {
      const world = new World(await newDatabase().open());
      await run(world);
      expect(await world.states(now)).toEqual(states);
    });

    test('is listed by expiry, in pages, with filters', async () => {
      const store = await newDatabase().open();
      const world = new World(store);
      const rows = [];
      for (const n of [3, 1, 2])
        rows.push(await world.issue(T0 + n * DAY, { subject: `CN=Press ${n}`, label: n === 2 ? 'lab' : null }));
      const [three, one] = rows;
      if (three === undefined || one === undefined) throw new Error('not issued');
      await world.use(three, T0 + 4 * DAY);
      const subjects = async (filter: object) => {
        const { items } = await store.listHolders({ limit: 9, ...filter });
        return items.map(({ subject }) => subject?.at(-1)).join('');
      };
      expect(await subjects({})).toBe('123');
      expect(await subjects({ order: 'desc' })).toBe('321');
      expect([await subjects({ ca: 'lab' }), await subjects({ labels: ['devices'] })]).toEqual(['2', '13']);
      expect([await subjects({ subject: 'pRess 3' }), await subjects({ state: 'late' })]).toEqual(['3', '']);
      expect(await subjects({ expires_before: T0 + 12 * DAY })).toBe('1');
      expect([await subjects({ seen_before: T0 + 4 * DAY }), await subjects({ seen_before: T0 + 5 * DAY })]).toEqual([
        '12',
        '123',
      ]);
      const pages = [];
      for (let cursor: string | undefined; ;) {
        const page = await store.listHolders({ limit: 1, cursor });
        pages.push(...page.items.map(({ serial }) => serial));
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      expect(pages).toEqual([one.serial, rows[2]?.serial, three.serial]);
      await expect(store.listHolders({ limit: 1, cursor: 'b3RwOjE' })).rejects.toMatchObject({
        code: 'CURSOR_INVALID',
      });
      expect(await store.countExpiringHolders(T0 + 10.5 * DAY)).toMatchObject(
        [
          { label: 'devices', day: 1, week: 2, month: 2 },
          { label: 'lab', day: 0, week: 1, month: 1 },
        ].sort((a, b) => a.label.localeCompare(b.label)),
      );
    });

    test('is reported once for a state and a certificate, and not if it was in the state at the first start', async () => {
      const store = await newDatabase().open();
      const quiet = new World(store, { ...RULES, reports: false });
      await quiet.issue(T0, { subject: 'CN=old' });
      await quiet.holders(T0 + 10 * DAY - HOUR);
      const world = new World(store);
      const { serial } = await world.issue(T0, { subject: 'CN=new' });
      const entered = async (at: number) => {
        await world.holders(at);
        const counts = await store.countEnteredHolders(at - MINUTE);
        return (await Promise.all(counts.map(({ label, state }) => store.listEnteredHolders(label, state)))).flat();
      };
      const late = await entered(T0 + 10 * DAY - HOUR);
      expect(late).toMatchObject([{ state: 'late', subject: 'CN=new', serial, issuer: 'devices' }]);
      await store.reportHolders(late, T0 + 10 * DAY - HOUR, []);
      await world.reject(T0 + 10 * DAY - 9, { certificate: { serial } });
      const failing = await entered(T0 + 10 * DAY - 8);
      expect(failing).toMatchObject([{ state: 'failing', last_code: 'SAN_MISMATCH' }]);
      await store.reportHolders(failing, T0 + 10 * DAY - 8, []);
      expect((await entered(T0 + 10 * DAY + 1)).map(({ state, subject }) => [state, subject])).toEqual([
        ['expired', 'CN=old'],
        ['expired', 'CN=new'],
      ]);
    });

    test('is found by a walk over what was there before, and forgotten when its certificates are deleted', async () => {
      const store = await newDatabase().open();
      const world = new World(store);
      const ignoring = new World(store, { ...RULES, expected: () => false });
      for (const n of [1, 2]) await ignoring.issue(T0, { subject: `CN=${n}` });
      await store.putDevices([{ row: deviceRow({ key: 'k', created_at: T0 }), events: [] }], 'create');
      expect(await world.holders(T0)).toEqual([]);
      for (const table of ['certificate', 'device'] as const) {
        expect(await store.walkFleet(table, RULES, T0)).toBe(false);
        await store.setFleetProgress(table, 0, 'rules');
        expect(await store.walkFleet(table, RULES, T0)).toBe(true);
        expect(await store.walkFleet(table, RULES, T0)).toBe(false);
      }
      expect((await world.states(T0)).map(([state]) => state)).toEqual(['ok', 'ok', 'never']);
      await world.states(T0 + 20 * DAY);
      await store.purgeCertificates(T0 + 20 * DAY, T0 + 20 * DAY);
      await store.applyFleetChanges({ purgedBefore: T0 + 20 * DAY }, RULES, T0 + 20 * DAY);
      expect((await world.states(T0 + 20 * DAY)).map(([state]) => state)).toEqual(['never']);
    });

    test('is in no list once it is forgotten, and kept until its certificate is deleted', async () => {
      const world = new World(await newDatabase().open());
      const { serial } = await world.issue(T0);
      const forgotten = T0 + 101 * DAY;
      expect(await world.states(forgotten)).toEqual([]);
      const kept = async () => (await world.store.listHeldCertificates(0)).holders;
      expect(await kept()).toMatchObject([{ state: null, certificates: [{ serial }] }]);
      await world.store.purgeCertificates(forgotten, forgotten);
      expect(await world.states(forgotten + 8 * DAY)).toEqual([]);
      expect(await kept()).toEqual([]);
      expect(await world.store.isHolderDue(forgotten + 900 * DAY)).toBe(false);
    });

    test('is in no list where nobody is expected to renew any more', async () => {
      const store = await newDatabase().open();
      const world = new World(store);
      await world.issue(T0);
      await store.setFleetProgress('certificate', 0, 'rules');
      await store.walkFleet('certificate', { ...RULES, expected: () => false }, T0);
      expect(await world.holders(T0)).toEqual([]);
    });

    test('is nobody for the certificate of a configured registration authority', async () => {
      const world = new World(await newDatabase().open());
      await world.issue(T0, { subject: 'CN=ra', fingerprint_sha256: 'ra' });
      expect(await world.holders(T0)).toEqual([]);
      await world.issue(T0 + 9, { subject: 'CN=ra' });
      expect(await world.states(T0 + 9)).toEqual([['ok', T0 + 9]]);
    });

    test('is replaced by a later certificate of the same names, or of a renewal; also where there are no holders', async () => {
      const store = await newDatabase().open();
      const world = new World(store);
      const kinds = [{}, { label: 'one-time' }, { method: 'automatic', subject: 'CN=est' }, { subject: 'CN=gone' }];
      const first: CertificateRow[] = [];
      for (const more of kinds) first.push(await world.issue(T0, more));
      const replaced = async (valid_at?: number) => {
        const known = await store.listSuccessions(
          first.map(({ serial }) => serial),
          valid_at,
        );
        expect(known.every(({ ca, last_failed_at }) => ca === 'devices' && last_failed_at === null)).toBe(true);
        return first.map(({ serial }) => known.find((row) => row.serial === serial)?.replaced);
      };
      expect(await replaced()).toEqual([0, 0, 0, 0]);
      const [renamed, ...others] = first;
      await world.issue(T0 + 9, { subject: 'CN=renamed' }, renamed);
      for (const { label, method, subject } of others) await world.issue(T0 + 9, { label, method, subject });
      expect(await replaced()).toEqual([1, 1, 1, 1]);
      const [last] = (await store.listCertificates({ subject: 'CN=gone', order: 'desc', limit: 1 }, T0)).items;
      await world.revoke(certificateRow(reservation(), last), T0);
      expect(await replaced()).toEqual([1, 1, 1, 0]);
      expect([await replaced(T0 + 10 * DAY + 9), await replaced(T0 + 10 * DAY + 10)]).toEqual([
        [1, 1, 1, 0],
        [0, 0, 0, 0],
      ]);
    });

    test('changes with each step once, even if two nodes apply it', async () => {
      const store = await newDatabase().open();
      const step = { name: 'audit node', from: 0, upto: 7 };
      expect(await store.applyFleetChanges({}, RULES, T0, step)).toBe(true);
      expect(await store.applyFleetChanges({}, RULES, T0, step)).toBe(false);
      expect(await store.fleetProgress()).toEqual(new Map([['audit node', { upto: 7, detail: null }]]));
    });
  });
}
