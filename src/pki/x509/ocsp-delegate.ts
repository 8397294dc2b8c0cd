/** What a certificate has to be for a CA's delegated OCSP responder (RFC 6960 §2.6, §4.2.2.2). */
import { OID } from '../der/oids.ts';
import type { Certificate } from './certificate.ts';
import { findExtension } from './extensions.ts';
import { isIssuedBy } from './name-matching.ts';
import { formatName } from './name.ts';
import { defaultSignatureAlgorithm } from './signature-algorithms.ts';

/** Why relying parties would not take this certificate for the CA's responder; its validity is not looked at. */
export async function ocspDelegateProblems(certificate: Certificate, ca: Certificate): Promise<string[]> {
  const problems: string[] = [];
  if (!(await isIssuedBy(certificate, ca)))
    problems.push(`"${formatName(certificate.subject)}" was not issued by the CA itself`);
  if (certificate.extKeyUsage?.includes(OID.OCSPSigning) !== true)
    problems.push('is not for OCSP responders (extKeyUsage OCSPSigning)');
  if (certificate.keyUsage?.includes('digitalSignature') === false)
    problems.push('may not sign (keyUsage without digitalSignature)');
  if (defaultSignatureAlgorithm(certificate.publicKey.keyType) === undefined)
    problems.push(`has a key of the type ${certificate.publicKey.keyType}, which is not supported`);
  return problems;
}

/** Whether relying parties are told not to ask for the responder's own status (RFC 6960 §4.2.2.2.1). */
export function hasNoCheck(certificate: Certificate): boolean {
  return findExtension(certificate.extensions, OID.ocspNoCheck) !== undefined;
}
