/** A test's Estuary with its store in PostgreSQL instead of a file. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { section, type EstuaryOptions } from './estuary.ts';
import { sharedPostgres } from './postgres.ts';
import { isStoreInPostgres } from './wanted-store.ts';

/** The options with the store in the database of a URL. @param key the same for all that share it: to find tokens, and to hash them */
export function withStoreIn(options: EstuaryOptions, url: string, node: string, key = randomBytes(32)): EstuaryOptions {
  return {
    ...options,
    configure(config, dir) {
      const store = section(config, 'store');
      delete store['path'];
      Object.assign(store, { driver: 'postgres', url_file: 'store.url', pool_size: 4, node_name: node });
      section(config, 'otp')['lookup_key_file'] = 'lookup.key';
      writeFileSync(join(dir, 'store.url'), url, { mode: 0o600 });
      for (const name of ['lookup.key', 'otp.key']) writeFileSync(join(dir, name), key, { mode: 0o600 });
      options.configure?.(config, dir);
    },
  };
}

/** The options as the environment of the tests wants them: a database for each server. */
export async function withWantedStore(options: EstuaryOptions): Promise<EstuaryOptions> {
  if (!isStoreInPostgres()) return options;
  const cluster = await sharedPostgres();
  return withStoreIn(options, await cluster.createDatabase(), `node-${randomBytes(4).toString('hex')}`);
}
