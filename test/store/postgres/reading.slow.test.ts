/** A store that is opened for reading, next to the nodes that write. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPostgresStoreForReading } from '../../../src/store/postgres/open.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { issue } from '../contract/support.ts';
import { event } from '../rows.ts';
import { emptied } from './support.ts';

describe.skipIf(!requires('postgres'))('a store for reading', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  test('a list is counted across ranges of positions, also empty ones', async () => {
    const database = await emptied(url);
    const store = await database.open('node-1');
    for (const position of [1, 100_000, 100_001, 900_000]) {
      await database.sql(`SELECT setval(pg_get_serial_sequence('certificate', 'position'), ${position}, false)`);
      await issue(store);
    }
    const counted = async (limit: number) => (await store.listCertificates({ limit, counts: true }, 0)).total;
    expect(await counted(10)).toEqual({ count: 4, exact: true });
    expect(await counted(4)).toEqual({ count: 4, exact: true });
    expect(await counted(3)).toEqual({ count: 3, exact: false });
  });

  test('reads what a node has written, and writes nothing', async () => {
    const database = await emptied(url);
    const row = await issue(await database.open('node-1'));
    const auditFile = database.auditFile('reader');
    const store = await openPostgresStoreForReading({ server: { url }, node: 'reader', auditFile });
    try {
      expect(await store.getCertificates(row.serial)).toEqual([row]);
      expect(await store.listHeldCertificates(0, 'devices')).toEqual({ holders: [], next: null });
      expect(await store.listGivenChains()).toEqual([]);
      await expect(store.audit([event('service.start')])).rejects.toMatchObject({ code: 'DRY_RUN' });
    } finally {
      await store.close();
    }
  });
});
