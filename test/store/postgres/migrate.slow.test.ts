import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { connectToMigrate, migrate } from '../../../src/store/postgres/migrate.ts';
import type { Migration } from '../../../src/store/postgres/schema.ts';
import { FIRST_VERSION } from '../../../src/store/calls/errors.ts';
import { type PostgresCluster, psql, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';

const FIRST: Migration = { sql: 'CREATE TABLE one (a bigint); CREATE TABLE two (a bigint)', serves: FIRST_VERSION };
const EXPAND: Migration = {
  sql: 'ALTER TABLE one ADD COLUMN b bigint; ALTER TABLE two ADD COLUMN b bigint',
  serves: FIRST_VERSION,
};
const CONTRACT: Migration = { sql: 'ALTER TABLE one DROP COLUMN a', serves: FIRST_VERSION + 1 };

describe.skipIf(!requires('postgres'))('migrations of PostgreSQL', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  const client = async (): Promise<pg.Client> => {
    const one = new pg.Client({ connectionString: url });
    await one.connect();
    onTestFinished(() => one.end());
    return one;
  };
  const migrated = async (migrations: readonly Migration[]): Promise<void> => {
    const connection = await connectToMigrate({ url }, 'test');
    try {
      await migrate(connection, migrations);
    } finally {
      connection.end();
    }
  };

  it('are made once by nodes that start together, give way to those at work, and refuse whom the schema no longer serves', async () => {
    await Promise.all([migrated([FIRST]), migrated([FIRST]), migrated([FIRST])]);

    // A node is at work on one table; the next statement of another node is not to wait for it behind the migration for long.
    const [working, other] = [await client(), await client()];
    await working.query('BEGIN; INSERT INTO two VALUES (1)');
    let done = false;
    const expanding = migrated([FIRST, EXPAND]).then(() => (done = true));
    const waits = async (): Promise<boolean> => {
      const { rowCount } = await other.query('SELECT FROM pg_locks WHERE relation = $1::regclass AND NOT granted', [
        'two',
      ]);
      return (rowCount ?? 0) > 0;
    };
    await expect.poll(waits).toBe(true);
    await other.query("SET lock_timeout = '60s'");
    await other.query('INSERT INTO one VALUES (1)');
    // It has taken back what it had, and comes again.
    expect(done).toBe(false);
    await expect.poll(waits).toBe(true);
    // One that would wait for it in a circle: one of the two is made again.
    const circle = working.query('INSERT INTO one VALUES (2)').then(
      () => working.query('COMMIT'),
      () => working.query('ROLLBACK'),
    );
    await Promise.all([circle, expanding]);

    // The previous version starts next to it.
    await migrated([FIRST]);
    await migrated([FIRST, EXPAND, CONTRACT]);
    await migrated([FIRST, EXPAND]);
    await expect(migrated([FIRST])).rejects.toMatchObject({ code: 'STORE_TOO_NEW' });

    await other.query('UPDATE estuary_schema SET version = 1, serves = 1');
    await expect(migrated([FIRST])).rejects.toMatchObject({
      code: 'STORE_TOO_OLD',
      message: expect.stringMatching(/estuary admin cert import.* 0\.1\.x/) as unknown,
    });
  });

  it('leave what version 0.2.0 does with the tables: it registers devices by their ID', async () => {
    const database = await cluster.createDatabase();
    const connection = await connectToMigrate({ url: database }, 'test');
    try {
      await migrate(connection);
      // With another device of this ID, which the other version registered.
      await connection.script(
        "INSERT INTO device (key, id, name, ca, enabled, attributes, created_at, changed_at) VALUES ('k', 'x+k', 'x', 'lab', 1, '{}', 0, 0)",
      );
      for (let n = 0; n < 2; n++)
        await connection.script(
          `INSERT INTO device (key, id, enabled, attributes, created_at, changed_at) VALUES ('${n}', 'x', 1, '{}', 0, 0) ON CONFLICT (id) DO NOTHING`,
        );
    } finally {
      connection.end();
    }
    expect(await psql(database, 'SELECT key FROM device ORDER BY key')).toEqual([['0'], ['k']]);
    await cluster.dropDatabase(database);
  });
});
