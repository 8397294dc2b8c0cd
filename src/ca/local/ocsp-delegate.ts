/** The OCSP responder that a CA delegates (RFC 6960 §2.6, §4.2.2.2): a key of its own, certified by the CA for that alone. */
import { verifyCertificateSignature, type Certificate } from '../../pki/certificate.ts';
import { explicit, sequence } from '../../pki/der.ts';
import { findExtension } from '../../pki/extensions.ts';
import { formatName, namesEqual } from '../../pki/name.ts';
import { OID } from '../../pki/oids.ts';
import { defaultSignatureAlgorithm } from '../../pki/signature-algorithms.ts';
import type { OcspDelegate, Signer } from '../driver.ts';
import { STATEMENT, VerifiedSigner } from './signing.ts';

/** @throws RangeError when the key is not the certificate's. */
export function ocspDelegate(certificate: Certificate, signer: Signer): OcspDelegate {
  if (!signer.spki.equals(certificate.spki)) throw new RangeError("the private key is not the certificate's");
  const key = new VerifiedSigner(signer, certificate.publicKey);
  // Relying parties know the CA, not its responder: the certificate goes along.
  const certificates = explicit(0, sequence(certificate.der));
  return {
    certificate,
    sign: (responseData) => key.sign(responseData, STATEMENT, certificates),
  };
}

/** Why relying parties would not take this certificate for the CA's responder; its validity is not looked at. */
export async function ocspDelegateProblems(certificate: Certificate, ca: Certificate): Promise<string[]> {
  const problems: string[] = [];
  if (!namesEqual(certificate.issuer, ca.subject) || !(await verifyCertificateSignature(certificate, ca)))
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
