import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openPostgresWriter } from '../../../src/store/postgres/roles.ts';
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
    const role = await openPostgresWriter(
      {
        driver: 'postgres',
        server: { url },
        node: 'node-1',
        audit_file: database.auditFile('node-1'),
        lookup_key: { configured: undefined, required: false },
      },
      T0,
    );
    onTestFinished(() => role.close());
    const first = reservation({});
    const reserve = (of: ReturnType<typeof reservation>) =>
      ({ operation: 'reserve', args: [of, [event('request.received')]] as never[], time: T0 }) as const;
    const replies = await role.carryOut([
      reserve(first),
      reserve(reservation({ serial: first.serial })),
      { operation: 'noSuchOperation', args: [], time: T0 },
    ]);
    expect(replies).toMatchObject([
      { value: 'reserved' },
      { value: 'serial-taken' },
      { error: { code: 'STORE_FAILED' } },
    ]);
  });
});
