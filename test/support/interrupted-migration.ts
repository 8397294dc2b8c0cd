/**
 * A process that upgrades a database of version 0.2.0 in one transaction that never ends. A test kills it before the COMMIT.
 *
 * node interrupted-migration.ts sqlite PATH | postgres URL
 */
import { openWritable } from '../../src/store/sqlite/database.ts';
import { MIGRATIONS as SQLITE } from '../../src/store/sqlite/schema.ts';
import { connectToMigrate, migrate } from '../../src/store/postgres/migrate.ts';
import { MIGRATIONS as POSTGRES } from '../../src/store/postgres/schema.ts';

const [driver, database = ''] = process.argv.slice(2);

if (driver === 'sqlite') {
  const endless = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n';
  const [initial = '', ...later] = SQLITE;
  openWritable(database, [initial, [...later, endless].join('\n')]);
} else {
  const [initial, ...later] = POSTGRES;
  if (initial === undefined) throw new Error('there is no schema');
  // pg_stat_activity shows the first 1024 octets.
  const sql = [`-- pg_sleep\nSELECT 1`, ...later.map((migration) => migration.sql), 'SELECT pg_sleep(3600)'].join(
    ';\n',
  );
  await migrate(await connectToMigrate({ url: database }, 'test'), [initial, { sql, serves: initial.serves }]);
}
