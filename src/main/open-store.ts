/** Opens the configured store. */
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { migrateDatabase } from '../store/postgres/migrate.ts';
import { openPostgresStore, type PostgresStoreOptions } from '../store/postgres/open.ts';
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
  return config.store.driver === 'postgres'
    ? openPostgresStore({ ...postgresOptions(config, material), ...on })
    : openStore({ ...sqliteOptions(config), ...on });
}

/** Migrates a shared database to this version's schema, including the table of live nodes. @throws as the driver */
export async function prepareStore(config: Config, material: Material): Promise<void> {
  if (config.store.driver === 'postgres') await migrateDatabase(postgresServer(config, material));
}

function sqliteOptions(config: Config): StoreOptions {
  return { path: config.store.path, node: nodeName(config), ...common(config) };
}

function postgresOptions(config: Config, material: Material): PostgresStoreOptions {
  return {
    server: postgresServer(config, material),
    node: nodeName(config),
    poolSize: config.store.pool_size,
    ...common(config),
  };
}

function common({ audit, otp }: Config): Pick<PostgresStoreOptions, 'auditFile' | 'lookupKey'> {
  return {
    auditFile: audit.file,
    lookupKey: { configured: otp.lookup_key?.reveal(), required: otp.enabled },
  };
}
