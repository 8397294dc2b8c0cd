import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { Config } from '../config/schema.ts';
import type { KeyPair } from '../config/material/material.ts';
import { pemOf } from '../pki/x509/certificate.ts';
import type { TlsMaterial } from './tls.ts';

/** What a listener presents and whom it lets try, in the forms that Node's TLS takes. */
export function tlsMaterial(
  pair: KeyPair,
  { min_version: minVersion, groups }: Pick<Config['tls'], 'min_version' | 'groups'>,
  trust: ClientTrust | undefined,
): TlsMaterial {
  return { ...presented(pair), minVersion, groups, clientCas: trust?.tlsCertificates ?? [] };
}

/** What a listener presents. */
export function presented({ certificates, privateKey }: KeyPair): Pick<TlsMaterial, 'certificate' | 'privateKey'> {
  return { certificate: pemOf(certificates), privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
}
