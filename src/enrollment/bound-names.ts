/** Names that a requester is bound to, and the others that it may not ask for (docs/guides/names.md). */
import type { ClientIdBinding, Identity } from '../auth/identity.ts';
import { allowedByPlaceholder } from '../ca/profile.ts';
import type { Ca } from '../ca/router.ts';
import { type EstuaryError, forbidden } from '../errors.ts';
import { OID } from '../pki/der/oids.ts';
import type { CsrContent } from '../pki/pkcs10/csr-content.ts';
import { attributeName } from '../pki/x509/attribute-types.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { formatGeneralName, type GeneralName, sameGeneralNames } from '../pki/x509/general-name.ts';
import type { PlaceholderValues } from '../pki/x509/name-template.ts';
import { type AttributeTypeAndValue, formatName, type Name, namesEqual } from '../pki/x509/name.ts';

/** The names that a requester may request. */
export type NameRight =
  /** An enrollment, by the rules of the requester's method. */
  | {
      readonly kind: 'enrollment';
      readonly identity: Identity;
      /** The request must have the certificate's subject, whatever the profile allows (full CMC). */
      readonly ownSubject?: true;
    }
  /** The names of this certificate. */
  | { readonly kind: 'renewal'; readonly certificate: Certificate }
  /** The names of its shared secret (RFC 5272 §6.2). */
  | { readonly kind: 'secret'; readonly identification: string }
  /** Any: a registration authority, or a requester that one vouches for. */
  | { readonly kind: 'any' }
  /** None: it polls a queued request. */
  | { readonly kind: 'none' };

/** Kinds of subjectAltName that can be a client_id or a principal. */
const BINDING: ReadonlySet<GeneralName['kind']> = new Set(['dns', 'ip', 'email', 'uri', 'upn']);

/** What a requester is bound to. */
type Bound =
  | { readonly by: 'client_id'; readonly value: string; readonly where: 'cn' | 'san' }
  | { readonly by: 'certificate'; readonly certificate: Certificate }
  | { readonly by: 'mapping'; readonly subject: Name };

/** The checked part of a request. */
interface Judged {
  readonly ca: Ca;
  readonly csr: Pick<CsrContent, 'subject' | 'subjectAltNames'>;
  readonly values: PlaceholderValues;
  /** The certificate's subject replaces the request's, which is not checked. */
  readonly subjectReplaced: boolean;
  /** SANs from a template. */
  readonly added: readonly GeneralName[];
}

/** Attributes that name the subject itself; others, such as O and DC, name what it belongs to. */
const NAMING: ReadonlySet<string> = new Set([OID.commonName, OID.userId, OID.serialNumber, OID.emailAddress]);
/** For client_ids, also names of devices in PKCS #9 and of persons in X.520. */
const NAMING_A_CLIENT: ReadonlySet<string> = new Set([...NAMING, OID.unstructuredName, OID.pseudonym]);

/**
 * Rejects every name that is neither the bound one nor allowed by a pattern with a placeholder; allows all if nothing
 * is bound.
 * @throws EstuaryError 403 `CLIENT_ID_MISMATCH`, `SUBJECT_NOT_OWN`, `NAME_NOT_OWN`
 */
export function checkBoundNames(right: NameRight, binding: ClientIdBinding, judged: Judged): void {
  const bound = boundTo(right, binding, judged.ca);
  if (bound === undefined) return;
  checkPresence(bound, judged);
  const { csr, subjectReplaced } = judged;
  if (!subjectReplaced && bound.by === 'client_id')
    for (const attribute of csr.subject.rdns.flat())
      if (
        NAMING_A_CLIENT.has(attribute.type) &&
        !isBound(bound, attribute.text, false) &&
        !allowsAttribute(judged, attribute)
      )
        throw notOwn(`${attributeName(attribute.type)}=${attribute.text}`);
  for (const name of csr.subjectAltNames)
    if (!isBoundAltName(bound, name) && !allowsAltName(judged, name)) throw notOwn(formatGeneralName(name));
}

function boundTo(right: NameRight, binding: ClientIdBinding, { profile }: Ca): Bound | undefined {
  if (right.kind === 'secret') return boundToClientId(right.identification, binding);
  if (right.kind !== 'enrollment') return undefined;
  const { identity } = right;
  switch (identity.method) {
    case 'otp':
      return boundToClientId(identity.client_id, binding);
    case 'ldap':
    case 'jwt':
      return boundToClientId(identity.client_id, identity.binding);
    case 'gssapi':
      return { by: 'mapping', subject: identity.subject };
    case 'mtls': {
      const same = profile.mtls_subject === 'same' || (profile.mtls_subject === 'auto' && identity.issuedHere);
      return same ? { by: 'certificate', certificate: identity.certificate } : undefined;
    }
    case 'cmc':
      return undefined;
  }
}

function boundToClientId(value: string, where: ClientIdBinding): Bound | undefined {
  return where === 'off' ? undefined : { by: 'client_id', value, where };
}

/** The bound name must be in its place. @throws EstuaryError 403 */
function checkPresence(bound: Bound, judged: Judged): void {
  const { csr, subjectReplaced, added } = judged;
  if (bound.by === 'certificate' && !subjectReplaced && !isSubjectOf(bound.certificate, judged))
    throw forbidden('SUBJECT_NOT_OWN', 'The CSR must request the subject of the certificate that authenticates it.');
  if (bound.by !== 'client_id') return;
  const present =
    bound.where === 'cn'
      ? subjectReplaced || isOnlyCommonName(csr.subject, bound.value)
      : [...csr.subjectAltNames, ...added].some((name) => isBoundAltName(bound, name));
  if (!present)
    throw forbidden('CLIENT_ID_MISMATCH', 'The CSR does not name the client that authenticates.', {
      detail: `"${formatName(csr.subject)}" [${csr.subjectAltNames.map(formatGeneralName).join(', ')}] instead of "${bound.value}"`,
    });
}

function isOnlyCommonName(subject: Name, value: string): boolean {
  const [name, ...more] = subject.rdns.flat().filter(({ type }) => type === OID.commonName);
  return name?.text === value && more.length === 0;
}

/** Whether the subject is the certificate's, ignoring attributes that patterns with placeholders allow. */
function isSubjectOf(certificate: Certificate, judged: Judged): boolean {
  const { subject } = judged.csr;
  if (namesEqual(subject, certificate.subject)) return true;
  const own = certificate.subject.rdns.flat();
  const others = subject.rdns
    .flat()
    .filter(({ type, text }) => !own.some((known) => known.type === type && known.text === text));
  return others.length > 0 && others.every((attribute) => allowsAttribute(judged, attribute));
}

function isBound(bound: Bound, value: string, ignoreCase: boolean): boolean {
  const same = (other: string): boolean => (ignoreCase ? other.toLowerCase() === value.toLowerCase() : other === value);
  if (bound.by === 'client_id') return same(bound.value);
  const subject = bound.by === 'mapping' ? bound.subject : bound.certificate.subject;
  return subject.rdns.flat().some(({ type, text }) => NAMING.has(type) && same(text));
}

function isBoundAltName(bound: Bound, name: GeneralName): boolean {
  if (bound.by === 'certificate')
    return bound.certificate.subjectAltNames.some((own) => sameGeneralNames([own], [name]));
  return BINDING.has(name.kind) && name.kind !== 'other' && isBound(bound, name.value, name.kind === 'dns');
}

function allowsAttribute({ ca, values }: Judged, attribute: AttributeTypeAndValue): boolean {
  return allowedByPlaceholder(ca.profile, { attribute }, values);
}

function allowsAltName({ ca, values }: Judged, name: GeneralName): boolean {
  return allowedByPlaceholder(ca.profile, { name }, values);
}

function notOwn(name: string): EstuaryError {
  const shown = JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
  return forbidden('NAME_NOT_OWN', `The request asks for a name that is not the requester's: ${shown}.`);
}
