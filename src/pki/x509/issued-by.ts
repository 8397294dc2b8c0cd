import { verifyCertificateSignature, type Certificate } from './certificate.ts';
import { namesMatch } from './name-matching.ts';

/** Whether a certificate has a CA's name for its issuer (RFC 5280 §7.1), and the CA's signature; the cheap look comes first. */
export async function isIssuedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  return namesMatch(certificate.issuer, issuer.subject) && (await verifyCertificateSignature(certificate, issuer));
}
