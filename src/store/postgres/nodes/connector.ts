/** Single connections to the database, beside those of the store: one that has to stay the same for long, or is held for a while. */
import pg from 'pg';
import { parsePostgresUrl, type PostgresUrl } from '../../../config/postgres-url.ts';
import { describe } from '../../../errors.ts';
import type { PostgresServer, PostgresTls } from '../../calls/database-options.ts';
import { storeUnavailable } from '../../calls/errors.ts';
import { tlsOptions } from '../connection.ts';

/** Milliseconds. */
const CONNECT = 4000;
const STATEMENT = 4000;

/** @returns what connects to that host of the URL which takes writes; it throws 503 `STORE_UNAVAILABLE` where none does */
export function connector(server: PostgresServer): () => Promise<pg.Client> {
  const url = parsePostgresUrl(server.url);
  return async () => {
    const problems: string[] = [];
    if (url === undefined) throw storeUnavailable('store.url is no URL of a PostgreSQL database');
    for (const host of url.hosts) {
      try {
        return await connectTo(host, url, server.tls);
      } catch (error) {
        problems.push(`${host.host}:${host.port}: ${describe(error)}`);
      }
    }
    throw storeUnavailable(problems.join('; '));
  };
}

async function connectTo(
  { host, port }: PostgresUrl['hosts'][number],
  url: PostgresUrl,
  tls: PostgresTls | undefined,
): Promise<pg.Client> {
  const client = new pg.Client({
    host,
    port,
    user: url.user,
    password: url.password,
    database: url.database,
    application_name: 'estuary node',
    connectionTimeoutMillis: CONNECT,
    query_timeout: STATEMENT,
    statement_timeout: STATEMENT,
    keepAlive: true,
    ssl: tlsOptions(host, url, tls) ?? false,
  });
  // Whoever uses it finds out at the next statement.
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
  if (rows[0]?.standby === false) return client;
  await client.end();
  throw new Error('it is a standby');
}
