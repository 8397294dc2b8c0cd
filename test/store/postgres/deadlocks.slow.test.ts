import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { certificateRow, deviceRow, event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { emptied } from './support.ts';

const ROUNDS = 20;
/** Tokens, and as many devices. */
const THINGS = 16;

describe.skipIf(!requires('postgres'))('no deadlocks under load', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    // A waiting transaction checks for deadlocks soon.
    await cluster.sql(`ALTER DATABASE ${nameOf(url)} SET deadlock_timeout = '20ms'`);
  });
  afterAll(() => cluster.dropDatabase(url));

  it('two nodes enroll, give uses back, revoke and change devices, with the same tokens and devices in opposite orders', async () => {
    const database = await emptied(url);
    const nodes = [await database.open('node-1'), await database.open('node-2')];
    const [first] = nodes;
    const tokens = Array.from({ length: THINGS }, (_, n) => otpRow({ id: `token-${n}`, max_uses: 1_000_000 }));
    const devices = Array.from({ length: THINGS }, (_, n) => deviceRow({ key: `key-${n}`, id: `device-${n}` }));
    for (const token of tokens) await first?.insertOtp(token, []);
    const entries = devices.map((row) => ({ row, events: [event('device.created')] }));
    await first?.putDevices(entries, 'create');

    const order = Array.from({ length: THINGS }, (_, n) => n);
    let failures: unknown[] = [];
    const node = async (store: Store, mine: readonly number[]): Promise<void> => {
      for (let round = 0; round < ROUNDS; round++) {
        const calls: Promise<unknown>[] = mine.map((n) => load(store, n));
        if (round % 3 === 0)
          calls.push(
            store.putDevices(
              mine.flatMap((n) => entries[n] ?? []),
              'upsert',
            ),
          );
        const settled = await Promise.allSettled(calls);
        failures = [
          ...failures,
          ...settled.filter((result) => result.status === 'rejected').map(({ reason }) => reason as unknown),
        ];
      }
    };
    await Promise.all(nodes.map((store, n) => node(store, n === 0 ? order : order.toReversed())));

    expect(failures).toEqual([]);
    const said = cluster.log.split('\n').filter((line) => line.includes(` ${nameOf(url)} `));
    expect(said.filter((line) => line.includes('deadlock detected'))).toEqual([]);
    expect(await first?.openReservations()).toEqual([]);
    const used = await Promise.all(tokens.map(async ({ id }) => (await first?.getOtp(id))?.uses));
    expect(used).toEqual(tokens.map(() => 0));
  });
});

const nameOf = (url: string): string => new URL(url).pathname.slice(1);

/** An enrollment that succeeds and one that does not, with a token and a device, and what an administrator does with them meanwhile. */
async function load(store: Store, n: number): Promise<void> {
  const of = { otp_id: `token-${n}`, device_key: `key-${n}`, subject: `CN=device-${n}` };
  // One with a token, which goes back, and one with a certificate.
  const [kept, given] = [reservation({ ...of, otp_id: null }), reservation(of)];
  const repeatable = { recognition: randomBytes(32).toString('hex'), retry_window: 60_000 };
  await Promise.all([
    store.reserve(kept, [event('admin.access')]),
    store.reserve(given, [event('otp.used')], repeatable),
    store.changeDevice(
      deviceRow({ id: `device-${n}`, key: `key-${n}` }),
      { note: randomBytes(4).toString('hex') },
      T0,
      [event('device.changed')],
    ),
  ]);
  const row = certificateRow(kept, { device: `device-${n}`, device_key: `key-${n}` });
  const queued = requestRow({ otp_id: null, device: `device-${n}`, device_key: `key-${n}` });
  await Promise.all([
    store.recordCertificate(row, [event('certificate.issued')]),
    store.releaseReservation(given.request_id, [event('certificate.failed')]),
    store.queueRequest(queued, null, [event('request.queued')]),
  ]);
  const decision = { id: queued.id, status: 'approved' as const, reason: null, decided_at: T0 };
  await Promise.all([
    store.revokeCertificate(
      { ca: row.ca, serial: row.serial, revoked_at: T0, reason: 'superseded', invalidity_date: null },
      [event('certificate.revoked')],
    ),
    store.decideRequest(decision, [event('request.approved')]),
  ]);
}
