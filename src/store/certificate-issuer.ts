import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import { isIssuedBy, namesMatch } from '../pki/x509/name-matching.ts';
import type { Name } from '../pki/x509/name.ts';
import type { CertificateRow } from './certificate-store.ts';

/** A certificate, and the CA that issued it according to the validated path; undefined where no path leads to it. */
export interface IssuedCertificate {
  readonly certificate: Certificate;
  readonly issuer: Certificate | undefined;
}

/**
 * Whether a row that was found by its serial number has this issuer name. A restored row may lack its certificate; then the
 * serial number has to do. It is random and has 64 bits or more.
 */
export function isOfIssuer({ der }: Pick<CertificateRow, 'der'>, issuer: Name): boolean {
  return der.length === 0 || namesMatch(parseCertificate(der).issuer, issuer);
}

/**
 * Whether a row that was found by its serial number is the record of a certificate: both have one issuer, by its name and its
 * key. The encodings may differ, because anyone can change an ECDSA signature (r, s) to (r, n − s).
 */
export async function isRecordOf(
  row: Pick<CertificateRow, 'der'>,
  { certificate, issuer }: IssuedCertificate,
): Promise<boolean> {
  if (issuer === undefined || row.der.length === 0) return isOfIssuer(row, certificate.issuer);
  return row.der.equals(certificate.der) || isIssuedBy(parseCertificate(row.der), issuer);
}
