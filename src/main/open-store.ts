/** The store of a configuration, whichever driver keeps it. */
import type { AuditEvent } from '../audit/event.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import type { DatabaseOptions } from '../store/calls/database-options.ts';
import type { WriterAddress } from '../store/calls/writer-address.ts';
import { migrateDatabase } from '../store/postgres/migrate.ts';
import { openPostgresStore, postgresDatabase, type PostgresStoreOptions } from '../store/postgres/open.ts';
import { databaseOptions, openStore, type StoreOptions } from '../store/sqlite/open.ts';
import type { Store } from '../store/store.ts';
import { nodeName } from './nodes.ts';
import { postgresServer } from './postgres-server.ts';

interface Opening {
  /** Where another process writes the store. */
  readonly writer?: WriterAddress;
  readonly onCommit: (events: readonly AuditEvent[]) => void;
}

/** @throws as the driver */
export function openConfiguredStore(config: Config, material: Material, opening: Opening): Promise<Store> {
  return config.store.driver === 'postgres'
    ? openPostgresStore({ ...postgresOptions(config, material), ...opening })
    : openStore({ ...sqliteOptions(config), ...opening });
}

/** Brings the tables of a database to this program's schema: what says which nodes live is among them. @throws as the driver */
export async function prepareStore(config: Config, material: Material): Promise<void> {
  if (config.store.driver === 'postgres') await migrateDatabase(postgresServer(config, material));
}

/** What a process that writes for others needs. */
export function writerOptions(config: Config, material: Material): DatabaseOptions {
  return config.store.driver === 'postgres'
    ? postgresDatabase(postgresOptions(config, material))
    : databaseOptions(sqliteOptions(config));
}

/** One thread or process writes it, with as many workers as may be. */
function sqliteOptions(config: Config): StoreOptions {
  return { path: config.store.path, node: nodeName(config), alone: true, ...common(config) };
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
