import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { KeyPair } from '../config/material/material.ts';
import { pemOf } from '../pki/x509/certificate.ts';
import type { TlsMaterial } from './tls.ts';

/** What a listener presents and whom it lets try, in the forms that Node's TLS takes. */
export function tlsMaterial(
  { certificates, privateKey }: KeyPair,
  minVersion: TlsMaterial['minVersion'],
  trust: ClientTrust | undefined,
): TlsMaterial {
  return {
    certificate: pemOf(certificates),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    minVersion,
    clientCas: trust?.tlsCertificates ?? [],
  };
}
