/** Opens the configured store. */
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { migrateDatabase } from '../store/postgres/migrate.ts';
import { openPostgresStore } from '../store/postgres/open.ts';
import { openStore, type StoreOptions } from '../store/sqlite/open.ts';
import type { Store } from '../store/store.ts';
import { nodeName } from './nodes.ts';
import { postgresServer } from './postgres-server.ts';

/**
 * @param on receives the events of requests, certificates and rejected credentials after commit, and the finding that
 * the database is older than the audit file
 * @throws as the driver
 */
export function openConfiguredStore(
  config: Config,
  material: Material,
  on: Pick<StoreOptions, 'now' | 'onCommit' | 'onBehind'>,
): Promise<Store> {
  const { store, audit, otp } = config;
  const common = {
    node: nodeName(config),
    auditFile: audit.file,
    lookupKey: { configured: otp.lookup_key?.reveal(), required: otp.enabled },
    ...on,
  };
  return store.driver === 'postgres'
    ? openPostgresStore({ server: postgresServer(config, material), poolSize: store.pool_size, ...common })
    : openStore({ path: store.path, ...common });
}

/** Migrates a shared database to this version's schema, including the table of live nodes. @throws as the driver */
export async function prepareStore(config: Config, material: Material): Promise<void> {
  if (config.store.driver === 'postgres') await migrateDatabase(postgresServer(config, material));
}
