/** Single connections to the database, beside those of the store: one that has to stay the same for long, or is held for a while. */
import pg from 'pg';
import type { PostgresServer } from '../../calls/database-options.ts';
import { firstHost } from '../connection.ts';

/** Milliseconds. */
const CONNECT = 4000;
const STATEMENT = 4000;

/** @returns what connects to that host of the URL which takes writes; it throws 503 `STORE_UNAVAILABLE` where none does */
export function connector(server: PostgresServer): () => Promise<pg.Client> {
  return () => firstHost(server, connectTo);
}

async function connectTo(target: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({
    ...target,
    application_name: 'estuary node',
    connectionTimeoutMillis: CONNECT,
    query_timeout: STATEMENT,
    statement_timeout: STATEMENT,
  });
  // Whoever uses it finds out at the next statement.
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
  if (rows[0]?.standby === false) return client;
  await client.end();
  throw new Error('it is a standby');
}
