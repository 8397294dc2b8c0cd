import { parseCertificate } from '../pki/x509/certificate.ts';
import { namesMatch } from '../pki/x509/name-matching.ts';
import type { Name } from '../pki/x509/name.ts';
import type { CertificateRow } from './certificate-store.ts';

/**
 * Whether a row found by its serial number is of this issuer. Of one that a restored store knows from the audit log alone, the serial number
 * is all there is to go by; it is random, and has 64 bits or more.
 */
export function isOfIssuer({ der }: Pick<CertificateRow, 'der'>, issuer: Name): boolean {
  return der.length === 0 || namesMatch(parseCertificate(der).issuer, issuer);
}
