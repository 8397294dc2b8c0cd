import pg from 'pg';
import { onTestFinished } from 'vitest';
import { openPostgresStore, type PostgresStoreOptions } from '../../../src/store/postgres/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { temporaryPaths } from '../support.ts';

/** A database, and the nodes that share it during a test. */
export interface SharedDatabase {
  readonly url: string;
  /** Opens the store of a node, which is closed when the test ends. */
  open(node: string, more?: Partial<PostgresStoreOptions>): Promise<Store>;
  /** Where a node has its audit file. */
  auditFile(node: string): string;
  /** Carries out SQL. */
  sql(text: string): Promise<readonly object[]>;
}

/** The database for a test, as if it were new: what an earlier test has left is gone. */
export async function emptied(url: string): Promise<SharedDatabase> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`DO $$ BEGIN
    IF to_regclass('estuary_schema') IS NOT NULL THEN
      EXECUTE (SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ') || ' RESTART IDENTITY'
        FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'estuary_schema');
      INSERT INTO probe (at) VALUES (0);
    END IF;
  END $$`);
  const { folder } = temporaryPaths();
  const auditFile = (node: string): string => `${folder}/${node}.log`;
  return {
    url,
    auditFile,
    sql: async (text) => (await client.query<object>(text)).rows,
    async open(node, more = {}) {
      const store = await openPostgresStore({
        server: { url },
        node,
        auditFile: auditFile(node),
        lookupKey: { configured: undefined, required: false },
        poolSize: 3,
        ...more,
      });
      onTestFinished(() => store.close());
      return store;
    },
  };
}
