/**
 * Decides names: which names a requester may request (403), and which the certificate gets. Applies to every operation,
 * between authentication and policy.
 */
import type { ClientIdBinding, Identity } from '../auth/identity.ts';
import type { Ca } from '../ca/router.ts';
import { type EstuaryError, forbidden, isRefusal } from '../errors.ts';
import { changeSubject, checkNoEmptyValue, type CsrContent } from '../pki/pkcs10/csr-content.ts';
import { type Certificate, isIssuedBy, parseCertificate } from '../pki/x509/certificate.ts';
import {
  encodeGeneralNames,
  formatGeneralName,
  type GeneralName,
  parseGeneralNames,
  sameGeneralNames,
} from '../pki/x509/general-name.ts';
import type { PlaceholderValues } from '../pki/x509/name-template.ts';
import { formatName, issuedName, type Name, namesEqual, parseName, withoutEmpty } from '../pki/x509/name.ts';
import { checkBoundNames, type NameRight } from './bound-names.ts';
import { filledTemplates, placeholderValues } from './name-templates.ts';
import type { RequestBase } from './request.ts';

export type { NameRight } from './bound-names.ts';

/** The names that a certificate gets: decided on authorization, and stored with a queued request. */
export interface CertifiedNames {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  /** Names from `san.add`: the operator's own, which policy does not check. */
  readonly added: readonly GeneralName[];
}

/** A request with its names decided. */
export interface DecidedNames {
  /** With the names of a ChangeSubjectName, if any. */
  readonly csr: CsrContent;
  readonly names: CertifiedNames;
  readonly values: PlaceholderValues;
}

/**
 * The only place where names are decided.
 * @param authorized for the certificate to renew, of which its CA certified fewer
 * @returns the request, and the names that its certificate gets
 * @throws EstuaryError 400 `CSR_SUBJECT_INVALID` for an empty value, except in a renewal, which leaves it out; 403
 * `SUBJECT_NOT_OWN`, `CLIENT_ID_MISMATCH`, `NAME_NOT_OWN`, `NAME_NOT_MADE`,
 * `SUBJECT_MISMATCH`, `SAN_MISMATCH`, `SUBJECT_CHANGE_NOT_ALLOWED`
 */
export function decideNames(
  request: Pick<RequestBase, 'ca' | 'identity' | 'device'>,
  right: NameRight,
  csr: CsrContent,
  binding: ClientIdBinding,
  authorized?: CertifiedNames,
): DecidedNames {
  const { ca } = request;
  if (right.kind !== 'renewal') checkNoEmptyValue(csr);
  const values = placeholderValues(request, right);
  switch (right.kind) {
    case 'enrollment':
    case 'secret':
      return authorizeEnroll(ca, right, { csr, values }, binding);
    case 'renewal':
      return asAsked(
        authorizeReenroll(ca, right.certificate, { ...csr, subject: withoutEmpty(csr.subject) }, authorized),
        values,
      );
    case 'any':
      if (csr.subjectChange !== undefined) checkChangeAllowed(ca);
      return asAsked(changeSubject(csr), values);
    case 'none':
      throw forbidden('NAMES_NOT_OWN', 'The signer of this message may not request a certificate.');
  }
}

function asAsked(csr: CsrContent, values: PlaceholderValues): DecidedNames {
  return { csr, names: namesOf(csr), values };
}

function namesOf({ subject, subjectAltNames }: Pick<CsrContent, 'subject' | 'subjectAltNames'>): CertifiedNames {
  return { subject: issuedName(subject), subjectAltNames, added: [] };
}

/** The certificate's subject without templates: a Kerberos principal's mapped one, otherwise the request's. */
export function certifiedSubject(identity: Identity, csr: Pick<CsrContent, 'subject'>): Name {
  return identity.method === 'gssapi' ? identity.subject : csr.subject;
}

/**
 * Rules of simpleenroll, serverkeygen and CMC shared secrets for the requester and the CSR, and the result of
 * templates.
 * @throws EstuaryError 403 as {@link checkBoundNames}, {@link filledTemplates} or {@link authorizeSubjectChange}
 */
function authorizeEnroll(
  ca: Ca,
  right: Extract<NameRight, { readonly kind: 'enrollment' | 'secret' }>,
  { csr, values }: Pick<DecidedNames, 'csr' | 'values'>,
  binding: ClientIdBinding,
): DecidedNames {
  const { subject: made, added } = filledTemplates(ca.profile, values);
  const identity = right.kind === 'enrollment' ? right.identity : undefined;
  const subjectReplaced = made !== undefined || identity?.method === 'gssapi';
  const presented = identity?.method === 'mtls' ? identity.certificate : undefined;
  if (right.kind === 'enrollment' && right.ownSubject === true) checkOwnSubject(csr, presented);
  const asked = authorizeSubjectChange(ca, presented, csr);
  checkBoundNames(right, binding, { ca, csr, values, subjectReplaced, added });
  const subject = made ?? (identity === undefined ? asked.subject : certifiedSubject(identity, asked));
  const further = added.filter((name) => !asked.subjectAltNames.some((own) => sameGeneralNames([own], [name])));
  const names = namesOf({ subject, subjectAltNames: [...asked.subjectAltNames, ...further] });
  return { csr: asked, names: { ...names, added }, values };
}

function checkOwnSubject({ subject }: CsrContent, presented: Certificate | undefined): void {
  if (presented === undefined || !namesEqual(subject, presented.subject))
    throw forbidden('SUBJECT_NOT_OWN', "The request must ask for the subject of the sender's certificate.");
}

/** 403: the certificate must be renewed elsewhere. */
export function notIssuedHere(): EstuaryError {
  return forbidden(
    'NOT_ISSUED_HERE',
    'The client certificate was not issued by this CA, so it cannot be renewed here.',
  );
}

/** Whether the addressed CA issued the certificate at this label, or it may be renewed there. */
export async function isOfCa(ca: Ca, certificate: Certificate): Promise<boolean> {
  if (ca.ownIsRecorded) return ca.hasRecorded(certificate);
  for (const issuer of [ca.certificate, ...ca.renewalIssuers])
    if (await isIssuedBy(certificate, issuer)) return ca.counts(certificate, issuer);
  return false;
}

/**
 * RFC 7030 §4.2.2: subject and subjectAltName of the CSR equal those of the certificate to renew, or those that were
 * authorized for it; a ChangeSubjectName
 * attribute may request others.
 * @returns the request with the names that its certificate gets
 * @throws EstuaryError 403 `SUBJECT_MISMATCH`, `SAN_MISMATCH` or as {@link authorizeSubjectChange}
 */
function authorizeReenroll(ca: Ca, certificate: Certificate, csr: CsrContent, authorized?: CertifiedNames): CsrContent {
  if (authorized === undefined || !hasSameNames(csr, authorized))
    checkSameNames(csr, certificate, 'the certificate being renewed');
  return authorizeSubjectChange(ca, certificate, csr);
}

/**
 * RFC 6402 §2.8: ChangeSubjectName requests other names than those of the request, which themselves must be those of
 * the authenticating certificate. Without the attribute nothing is checked or changed.
 * @param presented the certificate that authenticates the requester, if any
 * @returns the request with the names that its certificate gets
 * @throws EstuaryError 403 `SUBJECT_CHANGE_NOT_ALLOWED` (`ca.profile.allow_subject_change`), `SUBJECT_MISMATCH`,
 * `SAN_MISMATCH`
 */
function authorizeSubjectChange(ca: Ca, presented: Certificate | undefined, csr: CsrContent): CsrContent {
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

type Names = Pick<CsrContent, 'subject' | 'subjectAltNames'>;

export const hasSameNames = (a: Names, b: Names): boolean =>
  namesEqual(a.subject, b.subject) && sameGeneralNames(a.subjectAltNames, b.subjectAltNames);

/** Whether a certificate requests its own names, so that it is renewed; false for a malformed request. */
export function requestsOwnNames(identity: Identity, request: () => Names | undefined): boolean {
  if (!('certificate' in identity) || identity.certificate === undefined) return false;
  try {
    const names = request();
    return names !== undefined && hasSameNames(names, identity.certificate);
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

/**
 * What to store of authorized names next to a certificate: undefined, unless its CA certified others. A renewal may ask
 * for both.
 */
export const namesBeyond = (certificate: Buffer, names: CertifiedNames): string | undefined =>
  hasSameNames(parseCertificate(certificate), names) ? undefined : formatCertifiedNames(names);

function checkSameNames(csr: CsrContent, certificate: Certificate, which: string): void {
  if (!namesEqual(csr.subject, certificate.subject))
    throw forbidden('SUBJECT_MISMATCH', `The CSR's subject differs from that of ${which}.`, {
      detail: `"${formatName(csr.subject)}" instead of "${formatName(certificate.subject)}"`,
    });
  if (!sameGeneralNames(csr.subjectAltNames, certificate.subjectAltNames)) {
    throw forbidden('SAN_MISMATCH', `The CSR's subjectAltName differs from that of ${which}.`, {
      detail: `${list(csr.subjectAltNames)} instead of ${list(certificate.subjectAltNames)}`,
    });
  }
}

const list = (names: CsrContent['subjectAltNames']): string => `[${names.map(formatGeneralName).join(', ')}]`;

/** The stored form: JSON of base64 DER. */
export function formatCertifiedNames({ subject, subjectAltNames, added }: CertifiedNames): string {
  const names = (list: readonly GeneralName[]): string | null =>
    list.length === 0 ? null : encodeGeneralNames(list).toString('base64');
  return JSON.stringify([subject.der.toString('base64'), names(subjectAltNames), names(added)]);
}

/** @throws TypeError, DerError, SyntaxError for anything but the output of {@link formatCertifiedNames} */
export function parseCertifiedNames(text: string): CertifiedNames {
  const parts: unknown = JSON.parse(text);
  const at = (index: number): string | null => {
    const part: unknown = Array.isArray(parts) ? parts[index] : undefined;
    if (part !== null && typeof part !== 'string') throw new TypeError('the value is not a list of names');
    return part;
  };
  const names = (index: number): GeneralName[] => {
    const der = at(index);
    return der === null ? [] : parseGeneralNames(Buffer.from(der, 'base64'));
  };
  return { subject: parseName(Buffer.from(at(0) ?? '', 'base64')), subjectAltNames: names(1), added: names(2) };
}
