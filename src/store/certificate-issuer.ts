import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import { isIssuedBy, namesMatch } from '../pki/x509/name-matching.ts';
import type { Name } from '../pki/x509/name.ts';
import type { CertificateRow } from './certificate-store.ts';

/** A certificate, and its issuer in the validated path; undefined without a path. */
export interface IssuedCertificate {
  readonly certificate: Certificate;
  readonly issuer: Certificate | undefined;
}

/**
 * Whether a row found by serial number has this issuer name. A restored row may lack its certificate; then the serial
 * number suffices, which is random and has at least 64 bits.
 */
export function isOfIssuer({ der }: Pick<CertificateRow, 'der'>, issuer: Name): boolean {
  return der.length === 0 || namesMatch(parseCertificate(der).issuer, issuer);
}

/**
 * Whether a row found by serial number is the record of a certificate: same issuer, by name and key. The encodings may
 * differ, because anyone can change an ECDSA signature (r, s) to (r, n − s).
 */
export async function isRecordOf(
  row: Pick<CertificateRow, 'der'>,
  { certificate, issuer }: IssuedCertificate,
): Promise<boolean> {
  if (issuer === undefined || row.der.length === 0) return isOfIssuer(row, certificate.issuer);
  return row.der.equals(certificate.der) || isIssuedBy(parseCertificate(row.der), issuer);
}
