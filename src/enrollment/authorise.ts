/** Who may ask for what (403): the rules between authentication and policy. */
import type { Identity, MtlsIdentity } from '../auth/identity.ts';
import type { Ca } from '../ca/router.ts';
import { forbidden } from '../errors.ts';
import { verifyCertificateSignature, type Certificate } from '../pki/certificate.ts';
import type { Csr, CsrContent } from '../pki/csr.ts';
import { formatGeneralName, sameGeneralNames } from '../pki/general-name.ts';
import { namesEqual } from '../pki/name.ts';

/** How an OTP's client_id binds the CSR (`otp.bind_client_id`). */
export type ClientIdBinding = 'off' | 'cn' | 'san';

const COMMON_NAME = '2.5.4.3';

/**
 * What simpleenroll asks of the pair of requester and CSR.
 *
 * @throws EstuaryError 403 `SUBJECT_NOT_OWN` (`ca.profile.mtls_subject = "same"`) or `CLIENT_ID_MISMATCH` (`otp.bind_client_id`)
 */
export function authoriseEnroll(ca: Ca, identity: Identity, csr: CsrContent, binding: ClientIdBinding): void {
  if (identity.method === 'mtls' && ca.profile.mtls_subject === 'same') {
    if (!namesEqual(csr.subject, identity.certificate.subject))
      throw forbidden('SUBJECT_NOT_OWN', 'The CSR must ask for the subject of the certificate that authenticates it.');
  }
  if (identity.method === 'otp' && !clientIdMatches(identity.client_id, csr, binding))
    throw forbidden('CLIENT_ID_MISMATCH', 'The CSR does not name the client that the one-time password was made for.');
}

function clientIdMatches(clientId: string, csr: CsrContent, binding: ClientIdBinding): boolean {
  if (binding === 'off') return true;
  if (binding === 'cn') {
    const names = csr.subject.rdns.flat().filter((attribute) => attribute.type === COMMON_NAME);
    return names.length === 1 && names[0]?.text === clientId;
  }
  return csr.subjectAltNames.some((name) => {
    if (name.kind === 'other') return false;
    return name.kind === 'dns' ? name.value.toLowerCase() === clientId.toLowerCase() : name.value === clientId;
  });
}

/**
 * The presented certificate must have been issued by the addressed CA or by one of its `renewal_issuers`; the issuer's
 * signature is checked, not only its name.
 *
 * @throws EstuaryError 403 `NOT_ISSUED_HERE`
 */
export async function authoriseRenewalIssuer(ca: Ca, identity: MtlsIdentity): Promise<void> {
  if (await isOfCa(ca, identity.certificate)) return;
  throw forbidden('NOT_ISSUED_HERE', 'The client certificate was not issued by this CA, so it cannot be renewed here.');
}

/** Whether the addressed CA issued the certificate, or one whose certificates may be renewed there. */
export async function isOfCa(ca: Ca, certificate: Certificate): Promise<boolean> {
  for (const issuer of [ca.certificate, ...ca.renewalIssuers]) if (await isIssuedBy(issuer, certificate)) return true;
  return false;
}

/** Whether the issuer's name and its signature are on the certificate. */
export async function isIssuedBy(issuer: Certificate, certificate: Certificate): Promise<boolean> {
  return namesEqual(issuer.subject, certificate.issuer) && (await verifyCertificateSignature(certificate, issuer));
}

/**
 * RFC 7030 §4.2.2: subject and subjectAltName of the CSR are those of the certificate being renewed.
 *
 * @throws EstuaryError 403 `SUBJECT_MISMATCH` or `SAN_MISMATCH`
 */
export function authoriseReenroll(identity: MtlsIdentity, csr: Csr): void {
  const { certificate } = identity;
  if (!namesEqual(csr.subject, certificate.subject))
    throw forbidden('SUBJECT_MISMATCH', "The CSR's subject differs from that of the certificate being renewed.");
  if (!sameGeneralNames(csr.subjectAltNames, certificate.subjectAltNames)) {
    throw forbidden('SAN_MISMATCH', "The CSR's subjectAltName differs from that of the certificate being renewed.", {
      detail: `${list(csr.subjectAltNames)} instead of ${list(certificate.subjectAltNames)}`,
    });
  }
}

const list = (names: Csr['subjectAltNames']): string => `[${names.map(formatGeneralName).join(', ')}]`;
