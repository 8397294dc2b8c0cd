/**
 * The names of a certificate: who may ask for which (403), and which it gets. The rules between authentication and policy, for every way in.
 */
import type { Identity } from '../auth/identity.ts';
import type { Ca } from '../ca/router.ts';
import { forbidden, type EstuaryError } from '../errors.ts';
import { verifyCertificateSignature, type Certificate } from '../pki/x509/certificate.ts';
import { changeSubject, type CsrContent } from '../pki/pkcs10/csr-content.ts';
import { formatGeneralName, sameGeneralNames } from '../pki/x509/general-name.ts';
import { namesMatch } from '../pki/x509/name-matching.ts';
import { namesEqual, type Name } from '../pki/x509/name.ts';

/** How an OTP's client_id binds the CSR (`otp.bind_client_id`). */
export type ClientIdBinding = 'off' | 'cn' | 'san';

const COMMON_NAME = '2.5.4.3';

/** Which names a requester is entitled to ask for. */
export type NameRight =
  /** An enrolment: as its own method of authentication has it. */
  | { readonly kind: 'enrolment'; readonly identity: Identity }
  /** The names of this certificate. */
  | { readonly kind: 'renewal'; readonly certificate: Certificate }
  /** Those that its shared secret was made for (RFC 5272 §6.2). */
  | { readonly kind: 'secret'; readonly identification: string }
  /** Any: a registration authority, or whom one vouches for. */
  | { readonly kind: 'any' }
  /** None: it asks about a request that was queued. */
  | { readonly kind: 'none' };

/**
 * The one place where names are decided.
 *
 * @returns the request with the names that it may have, those of a ChangeSubjectName included
 * @throws EstuaryError 403 `SUBJECT_NOT_OWN`, `CLIENT_ID_MISMATCH`, `SUBJECT_MISMATCH`, `SAN_MISMATCH`, `SUBJECT_CHANGE_NOT_ALLOWED`
 */
export function decideNames(ca: Ca, right: NameRight, csr: CsrContent, binding: ClientIdBinding): CsrContent {
  switch (right.kind) {
    case 'enrolment':
      return authoriseEnroll(ca, right.identity, csr, binding);
    case 'renewal':
      return authoriseReenroll(ca, right.certificate, csr);
    case 'secret':
      authoriseClientId(right.identification, csr, binding);
      return authoriseSubjectChange(ca, undefined, csr);
    case 'any':
      if (csr.subjectChange !== undefined) checkChangeAllowed(ca);
      return changeSubject(csr);
    case 'none':
      throw forbidden('NAMES_NOT_OWN', 'The requester may not ask for a certificate with this message.');
  }
}

/** The subject that the certificate gets: a Kerberos principal's mapped one, else the request's. */
export function certifiedSubject(identity: Identity, csr: Pick<CsrContent, 'subject'>): Name {
  return identity.method === 'gssapi' ? identity.subject : csr.subject;
}

/** The names that the certificate gets. */
export function certifiedNames(identity: Identity, csr: CsrContent): Pick<CsrContent, 'subject' | 'subjectAltNames'> {
  return { subject: certifiedSubject(identity, csr), subjectAltNames: csr.subjectAltNames };
}

/**
 * What simpleenroll and serverkeygen ask of the pair of requester and CSR.
 *
 * @returns the request with the names that its certificate gets
 * @throws EstuaryError 403 `SUBJECT_NOT_OWN` (`ca.profile.mtls_subject = "same"`), `CLIENT_ID_MISMATCH` (`otp.bind_client_id`) or
 *   as {@link authoriseSubjectChange}
 */
function authoriseEnroll(ca: Ca, identity: Identity, csr: CsrContent, binding: ClientIdBinding): CsrContent {
  if (identity.method === 'mtls' && ca.profile.mtls_subject === 'same') {
    if (!namesEqual(csr.subject, identity.certificate.subject))
      throw forbidden('SUBJECT_NOT_OWN', 'The CSR must ask for the subject of the certificate that authenticates it.');
  }
  if (identity.method === 'otp') authoriseClientId(identity.client_id, csr, binding);
  return authoriseSubjectChange(ca, identity.method === 'mtls' ? identity.certificate : undefined, csr);
}

/**
 * The request names the client that a one-time password, or a shared secret of CMC, was made for.
 *
 * @throws EstuaryError 403 `CLIENT_ID_MISMATCH`
 */
function authoriseClientId(clientId: string, csr: CsrContent, binding: ClientIdBinding): void {
  if (!clientIdMatches(clientId, csr, binding))
    throw forbidden('CLIENT_ID_MISMATCH', 'The CSR does not name the client that the password was made for.');
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

/** 403: a certificate that is to be renewed elsewhere. */
export function notIssuedHere(): EstuaryError {
  return forbidden(
    'NOT_ISSUED_HERE',
    'The client certificate was not issued by this CA, so it cannot be renewed here.',
  );
}

/** Whether the addressed CA issued the certificate, or one whose certificates may be renewed there. */
export async function isOfCa(ca: Ca, certificate: Certificate): Promise<boolean> {
  for (const issuer of [ca.certificate, ...ca.renewalIssuers]) if (await isIssuedBy(issuer, certificate)) return true;
  return false;
}

/** Whether the issuer's name and its signature are on the certificate. */
export async function isIssuedBy(issuer: Certificate, certificate: Certificate): Promise<boolean> {
  return namesMatch(issuer.subject, certificate.issuer) && (await verifyCertificateSignature(certificate, issuer));
}

/**
 * RFC 7030 §4.2.2: subject and subjectAltName of the CSR are those of the certificate being renewed; others may be asked for
 * with a ChangeSubjectName attribute.
 *
 * @returns the request with the names that its certificate gets
 * @throws EstuaryError 403 `SUBJECT_MISMATCH`, `SAN_MISMATCH` or as {@link authoriseSubjectChange}
 */
function authoriseReenroll(ca: Ca, certificate: Certificate, csr: CsrContent): CsrContent {
  checkSameNames(csr, certificate, 'the certificate being renewed');
  return authoriseSubjectChange(ca, certificate, csr);
}

/**
 * RFC 6402 §2.8: a ChangeSubjectName attribute has the CA certify other names than those of the request, which themselves
 * must be those of the certificate that verifies it. Without the attribute nothing is checked or changed.
 *
 * @param presented the certificate that authenticates the requester, if one does
 * @returns the request with the names that its certificate gets
 * @throws EstuaryError 403 `SUBJECT_CHANGE_NOT_ALLOWED` (`ca.profile.allow_subject_change`), `SUBJECT_MISMATCH`, `SAN_MISMATCH`
 */
function authoriseSubjectChange(ca: Ca, presented: Certificate | undefined, csr: CsrContent): CsrContent {
  if (csr.subjectChange === undefined) return csr;
  checkChangeAllowed(ca);
  if (presented === undefined)
    throw changeNotAllowed('Only a request that a client certificate authenticates can change its subject.');
  checkSameNames(csr, presented, 'the certificate that authenticates it');
  return changeSubject(csr);
}

function checkChangeAllowed({ profile }: Ca): void {
  if (!profile.allow_subject_change) throw changeNotAllowed('This CA does not let a request change its subject.');
}

const changeNotAllowed = (message: string): EstuaryError => forbidden('SUBJECT_CHANGE_NOT_ALLOWED', message);

function checkSameNames(csr: CsrContent, certificate: Certificate, which: string): void {
  if (!namesEqual(csr.subject, certificate.subject))
    throw forbidden('SUBJECT_MISMATCH', `The CSR's subject differs from that of ${which}.`);
  if (!sameGeneralNames(csr.subjectAltNames, certificate.subjectAltNames)) {
    throw forbidden('SAN_MISMATCH', `The CSR's subjectAltName differs from that of ${which}.`, {
      detail: `${list(csr.subjectAltNames)} instead of ${list(certificate.subjectAltNames)}`,
    });
  }
}

const list = (names: CsrContent['subjectAltNames']): string => `[${names.map(formatGeneralName).join(', ')}]`;
