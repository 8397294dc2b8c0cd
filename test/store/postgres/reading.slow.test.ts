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
