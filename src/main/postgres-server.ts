/** The PostgreSQL server of a configuration. */
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { encodePem } from '../pki/der/pem.ts';
import type { PostgresServer } from '../store/postgres/connection.ts';

/** The address of the database and its TLS settings. */
export function postgresServer({ store }: Config, { storeTls }: Pick<Material, 'storeTls'>): PostgresServer {
  const url = store.url?.reveal().toString('utf8') ?? '';
  if (storeTls === undefined) return { url };
  const { trustAnchors, client } = storeTls;
  const pem = (certificates: readonly { readonly der: Uint8Array }[]): string =>
    certificates.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
  return {
    url,
    tls: {
      ...(trustAnchors === undefined ? {} : { anchors: pem(trustAnchors) }),
      ...(client === undefined
        ? {}
        : {
            certificate: pem(client.certificates),
            private_key: client.privateKey.export({ format: 'pem', type: 'pkcs8' }),
          }),
    },
  };
}
