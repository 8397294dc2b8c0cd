/** Single connections to the database, beside those of the store: one that has to stay the same for long, or is held for a while. */
import pg from 'pg';
import type { ServiceMaterial } from '../../../config/material/material.ts';
import { parsePostgresUrl, type PostgresUrl } from '../../../config/postgres-url.ts';
import type { Config } from '../../../config/schema.ts';
import { describe } from '../../../errors.ts';
import { encodePem } from '../../../pki/der/pem.ts';
import { storeUnavailable } from '../../calls/errors.ts';

/** Milliseconds. */
const CONNECT = 4000;
const STATEMENT = 4000;

/** @returns what connects to that host of `store.url` which takes writes; it throws 503 `STORE_UNAVAILABLE` where none does */
export function connector(
  { store }: Pick<Config, 'store'>,
  tls: ServiceMaterial | undefined,
): () => Promise<pg.Client> {
  const url = parsePostgresUrl(store.url?.reveal().toString('utf8') ?? '');
  return async () => {
    const problems: string[] = [];
    for (const host of url?.hosts ?? []) {
      try {
        return await connectTo(host, url, tls);
      } catch (error) {
        problems.push(`${host.host}:${host.port}: ${describe(error)}`);
      }
    }
    throw storeUnavailable(problems.join('; '));
  };
}

async function connectTo(
  { host, port }: PostgresUrl['hosts'][number],
  url: PostgresUrl | undefined,
  tls: ServiceMaterial | undefined,
): Promise<pg.Client> {
  const client = new pg.Client({
    host,
    port,
    user: url?.user,
    password: url?.password,
    database: url?.database,
    application_name: 'estuary node',
    connectionTimeoutMillis: CONNECT,
    query_timeout: STATEMENT,
    statement_timeout: STATEMENT,
    keepAlive: true,
    ...(tls && {
      ssl: {
        rejectUnauthorized: true,
        ca: tls.trustAnchors?.map(({ der }) => encodePem('CERTIFICATE', der)),
        cert: tls.client?.certificates.map(({ der }) => encodePem('CERTIFICATE', der)).join(''),
        key: tls.client?.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
      },
    }),
  });
  // Whoever uses it finds out at the next statement.
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
  if (rows[0]?.standby === false) return client;
  await client.end();
  throw new Error('it is a standby');
}
