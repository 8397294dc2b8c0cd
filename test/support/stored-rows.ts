/** What lies in the store of a test's Estuary, in a file or in PostgreSQL. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';
import { copyOut } from './postgres.ts';

/** The rows of a SELECT that both databases understand. @param file the store, where it is in another one than the quickstart's */
export async function storedRows<Row extends object>(
  dir: string,
  select: string,
  file = join(dir, 'data/est.db'),
): Promise<Row[]> {
  const url = databaseUrl(dir);
  if (url !== undefined) return inPostgres(url, async (client) => (await client.query<Row>(select)).rows);
  const db = new Database(file, { readonly: true });
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

/** Every octet of the tables, where they are no files of the server's folder. */
export async function storedElsewhere(dir: string): Promise<Buffer> {
  const url = databaseUrl(dir);
  if (url === undefined) return Buffer.alloc(0);
  const select = "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'";
  const tables = await storedRows<{ name: string }>(dir, select);
  return Buffer.concat(await Promise.all(tables.map(({ name }) => copyOut(url, name))));
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
