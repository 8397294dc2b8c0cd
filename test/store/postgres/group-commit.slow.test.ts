import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { issuanceWrites } from '../../../src/store/issuance-store.ts';
import { EVERYTHING, write } from '../../../src/store/operation.ts';
import { openWriter } from '../../../src/store/postgres/open.ts';
import { PostgresPort } from '../../../src/store/postgres/port.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { event, reservation, T0 } from '../rows.ts';
import { emptied } from './support.ts';

describe.skipIf(!requires('postgres'))('calls in one transaction', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  it('each gets its own reply, also when two have the same id', async () => {
    const database = await emptied(url);
    const role = await openWriter(
      {
        server: { url },
        node: 'node-1',
        auditFile: database.auditFile('node-1'),
        lookupKey: { configured: undefined, required: false },
        poolSize: 1,
      },
      T0,
    );
    onTestFinished(() => role.close());
    const operation = issuanceWrites(new PostgresPort(role.db)).reserve;
    const broken = write(EVERYTHING, () => {
      throw new Error('a defect');
    });
    const first = reservation({});
    const reserve = (of: ReturnType<typeof reservation>) =>
      ({ operation, args: [of, [event('request.received')]] as never[], time: T0 }) as const;
    const replies = await role.carryOut([
      reserve(first),
      reserve(reservation({ serial: first.serial })),
      { operation: broken, args: [], time: T0 },
    ]);
    expect(replies).toMatchObject([
      { value: 'reserved' },
      { value: 'serial-taken' },
      { error: { code: 'STORE_FAILED' } },
    ]);
  });

  it('a database that lost only its last transaction is refused, also by the next process', async () => {
    const database = await emptied(url);
    const store = await database.open('node-1');
    await store.audit([event('service.start')]);
    const [head] = await database.sql('SELECT seq, hash, told, file_start, file_size FROM audit_head');
    await store.audit([event('otp.used')]);
    const before = Object.values(head ?? {}).map((value) => `'${String(value)}'`);
    await database.sql(
      `DELETE FROM audit WHERE type = 'otp.used';
       UPDATE audit_head SET (seq, hash, told, file_start, file_size) = (SELECT ${before[0]}::bigint, ${before[1]}, ${before[2]}::bigint,
         ${before[3]}::bigint, ${before[4]}::bigint)`,
    );
    await expect(store.audit([event('otp.used')])).rejects.toMatchObject({ code: 'STORE_BEHIND' });
    await store.close();
    await expect(database.open('node-1')).rejects.toMatchObject({ code: 'STORE_BEHIND' });
    expect(await database.sql('SELECT type FROM audit')).toEqual([{ type: 'service.start' }]);
  });
});
