import { afterAll, beforeAll, describe } from 'vitest';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { storeContract } from '../contract/index.ts';
import { emptied, type SharedDatabase } from './support.ts';

describe.skipIf(!requires('postgres'))('the PostgreSQL store keeps the contract of every driver', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  storeContract(() => {
    let database: Promise<SharedDatabase> | undefined;
    let nodes = 0;
    return {
      async open(now = Date.now, onCommit = () => undefined) {
        database ??= emptied(url);
        // Each is a separate server.
        const node = `node-${++nodes}`;
        return (await database).open(node, { now, onCommit });
      },
    };
  });
});
