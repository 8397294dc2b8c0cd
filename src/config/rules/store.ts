import { parsePostgresUrl } from '../postgres-url.ts';
import type { Config } from '../schema.ts';
import type { Finding } from './finding.ts';

const SHARED_KEY_MINIMUM = 32;
const SECRET_URL = 'url_file = "path" or url_env = "VARIABLE"';

/** The checks on `[store]`. That `path` was given beside `driver = "postgres"` shows in the document alone (load.ts). */
export function* storeChecks({ server, store, otp }: Config): Generator<Finding> {
  const { driver, url, tls, shared_key } = store;
  const about = ['store.driver'];
  if (shared_key !== undefined && shared_key.length < SHARED_KEY_MINIMUM)
    yield {
      key: 'store.shared_key',
      message: `has ${shared_key.length} bytes (${SHARED_KEY_MINIMUM} bytes or more)`,
    };
  if (driver === 'sqlite') {
    for (const [name, value] of Object.entries({ url, tls, shared_key }))
      if (value !== undefined)
        yield { key: `store.${name}`, message: 'goes with driver = "postgres" (driver is "sqlite" here)', about };
    if (server.reuse_port)
      yield {
        key: 'server.reuse_port',
        message: 'is true, and a SQLite store serves one node only (false, or store.driver = "postgres")',
        about,
      };
    return;
  }
  if (url === undefined)
    yield { key: 'store.url', message: `is missing, and store.driver is "postgres" (${SECRET_URL})`, about };
  else if (parsePostgresUrl(url.reveal().toString('utf8')) === undefined)
    yield {
      key: 'store.url',
      message: 'is no URL of a PostgreSQL database (postgresql://USER:PASSWORD@HOST/DATABASE, as libpq reads it)',
    };
  if (otp.enabled && otp.lookup_key === undefined)
    yield {
      key: 'otp.lookup_key',
      message:
        'is missing, and store.driver is "postgres" (lookup_key_file = "path" or lookup_key_env = "VARIABLE", the same key on every server of the database)',
      about: ['store.driver', 'otp.enabled'],
    };
}
