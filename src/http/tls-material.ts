import { readFile } from 'node:fs/promises';
import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { Config } from '../config/schema.ts';
import type { TlsMaterial } from './tls.ts';

/** What a listener presents and whom it lets try; read anew at each reload. */
export async function loadTlsMaterial(
  files: { readonly certificate: string; readonly private_key: string },
  minVersion: Config['tls']['min_version'],
  trust: ClientTrust | undefined,
): Promise<TlsMaterial> {
  const [certificate, privateKey] = await Promise.all([readFile(files.certificate), readFile(files.private_key)]);
  return { certificate, privateKey, minVersion, clientCas: trust?.tlsCertificates ?? [] };
}
