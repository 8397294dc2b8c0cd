/** Opens the configured store, and names its PostgreSQL server. */
import { hostname } from 'node:os';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { openPostgresStore, openPostgresStoreForReading } from '../store/postgres/open.ts';
import { openStore, openStoreForReading } from '../store/sqlite/open.ts';
import type { Store, StoreOptions } from '../store/store.ts';
import { pemOf } from '../pki/x509/certificate.ts';
import type { PostgresServer } from '../store/postgres/connection.ts';

export const nodeName = ({ store }: Pick<Config, 'store'>): string => store.node_name ?? hostname();

/** @throws as the driver */
export function openConfiguredStore(
  config: Config,
  material: Material,
  on: Pick<StoreOptions, 'now' | 'onCommit' | 'onBehind' | 'isHeld'>,
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

/** The same for reading, while a server uses it. @throws as the driver */
export function openConfiguredStoreForReading(config: Config, material: Pick<Material, 'storeTls'>): Promise<Store> {
  const { store, audit } = config;
  const auditFile = audit.file;
  return store.driver === 'postgres'
    ? openPostgresStoreForReading({ server: postgresServer(config, material), node: nodeName(config), auditFile })
    : new Promise((resolve) => resolve(openStoreForReading({ path: store.path, auditFile })));
}

/** The address of the database and its TLS settings. */
export function postgresServer({ store }: Config, { storeTls }: Pick<Material, 'storeTls'>): PostgresServer {
  const url = store.url?.reveal().toString('utf8') ?? '';
  if (storeTls === undefined) return { url };
  const { trustAnchors, client } = storeTls;
  return {
    url,
    tls: {
      anchors: trustAnchors && pemOf(trustAnchors),
      certificate: client && pemOf(client.certificates),
      private_key: client?.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    },
  };
}
