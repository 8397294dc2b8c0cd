/** What lies in the store of a test's Estuary, in a file or in PostgreSQL. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';

/** The rows of a SELECT that both databases understand. */
export async function storedRows<Row extends object>(dir: string, select: string): Promise<Row[]> {
  const url = databaseUrl(dir);
  if (url !== undefined) return inPostgres(url, async (client) => (await client.query<Row>(select)).rows);
  const db = new Database(join(dir, 'data/est.db'), { readonly: true });
  try {
    return db.prepare<[], Row>(select).all();
  } finally {
    db.close();
  }
}

/** Changes the store behind the server's back. @returns how many rows */
export async function changeStored(dir: string, statement: string): Promise<number> {
  const url = databaseUrl(dir);
  if (url !== undefined) return inPostgres(url, async (client) => (await client.query(statement)).rowCount ?? 0);
  const db = new Database(join(dir, 'data/est.db'));
  try {
    return db.prepare(statement).run().changes;
  } finally {
    db.close();
  }
}

/** Where store-in-postgres.ts has put the store of the server in a folder. */
function databaseUrl(dir: string): string | undefined {
  const file = join(dir, 'store.url');
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

async function inPostgres<T>(url: string, ask: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.setTypeParser(pg.types.builtins.INT8, Number);
  await client.connect();
  try {
    return await ask(client);
  } finally {
    await client.end();
  }
}
