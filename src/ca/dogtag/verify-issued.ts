/** What a remote CA issued, held against what was asked for: a certificate of somebody else never leaves. */
import { verifyCertificateSignature, type Certificate } from '../../pki/x509/certificate.ts';
import { formatGeneralName, sameGeneralNames, type GeneralName } from '../../pki/x509/general-name.ts';
import { namesMatch } from '../../pki/x509/name-matching.ts';
import { formatName, namesEqual } from '../../pki/x509/name.ts';
import { parsePublicKey, samePublicKey } from '../../pki/x509/public-key.ts';
import type { IssuanceRequest } from '../driver.ts';

/** Why the certificate is not the one that was asked for, or not this CA's; undefined when it is. */
export async function issuedProblem(
  certificate: Certificate,
  wanted: Pick<IssuanceRequest, 'spki' | 'subject' | 'subjectAltNames'>,
  issuer: Certificate,
): Promise<string | undefined> {
  if (!isKey(certificate, wanted.spki)) return 'it certifies another public key';
  if (!namesEqual(certificate.subject, wanted.subject))
    return `its subject is "${formatName(certificate.subject)}", not "${formatName(wanted.subject)}"`;
  if (!sameGeneralNames(certificate.subjectAltNames, wanted.subjectAltNames))
    return `its subjectAltName is ${list(certificate.subjectAltNames)}, not ${list(wanted.subjectAltNames)}`;
  if (certificate.isCa) return 'it is a CA certificate';
  if (!namesMatch(certificate.issuer, issuer.subject)) return `"${formatName(certificate.issuer)}" issued it`;
  if (!(await verifyCertificateSignature(certificate, issuer))) return 'its signature is not of this CA';
  return undefined;
}

/** Whether the certificate certifies this key, however its SubjectPublicKeyInfo is encoded. */
export function isKey({ publicKey }: Pick<Certificate, 'publicKey'>, spki: Buffer): boolean {
  return samePublicKey(publicKey, parsePublicKey(spki));
}

const list = (names: readonly GeneralName[]): string => `[${names.map(formatGeneralName).join(', ')}]`;
