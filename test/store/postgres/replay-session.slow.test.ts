/** Each kind of record can be replayed into PostgreSQL; test/main/backup.test.ts has what each one changes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chain, GENESIS_HASH, parseLine } from '../../../src/audit/record.ts';
import { openReplay } from '../../../src/store/postgres/replay-session.ts';
import { assumeUsed, dropCrls, replayer } from '../../../src/store/replay.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { deviceRow, event, otpRow, requestRow, T0 } from '../rows.ts';
import { emptied } from './support.ts';

describe.skipIf(!requires('postgres'))('a replay into PostgreSQL', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  it('applies each kind of record', async () => {
    const database = await emptied(url);
    const store = await database.open('node-1');
    const [used, unused, device, issued, rejected] = [otpRow(), otpRow(), deviceRow(), requestRow(), requestRow()];
    for (const token of [used, unused]) await store.insertOtp(token, []);
    await store.putDevices([{ row: device, events: [] }], 'create');
    for (const row of [issued, rejected]) await store.queueRequest(row, null, []);
    await store.close();
    const certificate = { ca: 'devices', serial: '0a' };
    const revoked = { ...certificate, revocation_reason: 'certificateHold' };
    const records = [
      event('certificate.issued', { ...certificate, request_id: issued.id }),
      event('certificate.imported', { ...certificate, serial: '0b' }),
      event('certificate.failed', { request_id: 'none' }),
      event('certificate.held', revoked),
      event('certificate.released', certificate),
      event('certificate.rescued', { ...certificate, rescue_until: new Date(T0 + 1).toISOString() }),
      event('certificate.rescue_ended', { ...certificate, request_id: 'r' }),
      event('certificate.revoked', { ...revoked, revocation_reason: 'superseded' }),
      event('otp.used', { token: used.id }),
      event('otp.used', { token: 'jwt:1', subject: 'somebody' }),
      event('otp.returned', { token: used.id, request_id: 'none' }),
      event('otp.changed', { token: used.id, token_expires_at: new Date(T0 + 1).toISOString() }),
      event('otp.revoked', { token: used.id }),
      event('device.changed', { device_key: device.key, device_enabled: false }),
      event('device.deleted', { device_key: device.key }),
      event('request.rejected', { request_id: rejected.id }),
      event('renewal.ended', { detail: 'none' }),
      event('crl.issued', { ca: 'devices', crl_number: 7 }),
    ];
    const session = await openReplay({ server: { url }, node: 'node-1', auditFile: database.auditFile('node-1') });
    try {
      const { apply, replayed } = replayer(session.db);
      for (const one of records) {
        const record = parseLine(chain({ seq: 0, hash: GENESIS_HASH }, one, T0, 'node-1', 0).line);
        if (record === undefined) throw new Error('no record');
        await session.run(apply(record));
      }
      expect([...replayed.applied]).toEqual([
        ['certificates issued', 1],
        ['certificates imported', 1],
        ['revocations', 2],
        ['releases of held certificates', 1],
        ['passes for one more renewal', 1],
        ['ended passes for one more renewal', 1],
        ['uses of tokens', 2],
        ['uses of tokens that were given back', 1],
        ['changes of tokens', 1],
        ['revocations of tokens', 1],
        ['devices disabled', 1],
        ['devices deleted', 1],
        ['requests rejected', 1],
        ['CRL numbers', 1],
      ]);
      expect(await session.run(assumeUsed(session.db, T0, ['lab'], 10))).toMatchObject([{ id: unused.id }]);
      expect(await session.run(dropCrls(session.db))).toBe(2);
      expect(await session.otherHeads()).toEqual(new Map([['node-1', session.head.seq]]));
    } finally {
      await session.close();
    }
  });
});
