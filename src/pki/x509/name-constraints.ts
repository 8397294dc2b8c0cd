/** The nameConstraints extension (RFC 5280 §4.2.1.10): reading it, and holding a certificate's names against it. */
import {
  DerError,
  DerReader,
  Tag,
  children,
  contextConstructed,
  contextPrimitive,
  parseDer,
  readInteger,
  readString,
  type DerElement,
} from '../der/der.ts';
import { foldedRdns } from './name-matching.ts';
import { formatGeneralName, type GeneralName } from './general-name.ts';
import { attributeValues, formatName, parseName, type Name } from './name.ts';
import { OID } from '../der/oids.ts';

type Base =
  | { readonly kind: 'dns' | 'email' | 'uri'; readonly value: string }
  | { readonly kind: 'ip'; readonly address: Buffer; readonly mask: Buffer }
  | { readonly kind: 'directory'; readonly rdns: readonly string[] }
  | { readonly kind: 'other'; readonly tag: number };

export interface NameConstraints {
  readonly permitted: readonly Base[];
  readonly excluded: readonly Base[];
}

/** A name to be held against the constraints of its kind; `text` is for messages. */
type ConstrainedName = { readonly text: string } & (
  | { readonly kind: 'dns' | 'email' | 'uri'; readonly value: string }
  | { readonly kind: 'ip'; readonly bytes: Buffer }
  | { readonly kind: 'directory'; readonly rdns: readonly string[] }
  | { readonly kind: 'other'; readonly tag: number }
);

const DIRECTORY_NAME = contextConstructed(4);

/** Names × subtrees above this are refused: a hostile certificate must not cost more than its signature. */
const MAX_COMPARISONS = 1 << 14;

/** @throws DerError, also for `minimum` or `maximum`, which RFC 5280 does not use */
export function parseNameConstraints(value: Buffer): NameConstraints {
  const reader = DerReader.of(value, 'NameConstraints');
  const permitted = reader.optional(contextConstructed(0), 'permittedSubtrees');
  const excluded = reader.optional(contextConstructed(1), 'excludedSubtrees');
  reader.end();
  return { permitted: subtrees(permitted), excluded: subtrees(excluded) };
}

function subtrees(list: DerElement | undefined): Base[] {
  if (list === undefined) return [];
  return children(list.value, 'GeneralSubtree').map((element) => {
    const reader = DerReader.of(element.raw, 'GeneralSubtree');
    const base = parseBase(reader.next(undefined, 'base'));
    const minimum = reader.optional(contextPrimitive(0), 'minimum');
    if (minimum !== undefined && readInteger({ ...minimum, tag: Tag.INTEGER }, 'minimum') !== 0)
      throw new DerError('GeneralSubtree.minimum: not 0');
    if (!reader.done) throw new DerError('GeneralSubtree.maximum: not supported');
    return base;
  });
}

function parseBase(element: DerElement): Base {
  const ia5 = (): string => readString({ ...element, tag: Tag.IA5_STRING }, 'GeneralSubtree.base');
  switch (element.tag) {
    case contextPrimitive(1):
      return { kind: 'email', value: ia5() };
    case contextPrimitive(2):
      return { kind: 'dns', value: ia5() };
    case contextPrimitive(6):
      return { kind: 'uri', value: ia5() };
    case contextPrimitive(7): {
      const half = element.value.length / 2;
      if (half !== 4 && half !== 16) throw new DerError('GeneralSubtree.base: not an address and a mask');
      return { kind: 'ip', address: element.value.subarray(0, half), mask: element.value.subarray(half) };
    }
    case DIRECTORY_NAME:
      return { kind: 'directory', rdns: foldedRdns(parseName(element.value)) };
    default:
      return { kind: 'other', tag: element.tag };
  }
}

/**
 * Why the constraints of a CA forbid the names of a certificate below it, or undefined. A kind of name that is not
 * supported is forbidden as soon as it is both constrained and present.
 *
 * @param endEntity the last certificate of the path: its CN counts as a DNS name where it has no DNS name and the CN
 *   looks like one (as OpenSSL does)
 */
export function nameConstraintProblem(
  constraints: NameConstraints,
  subject: Name,
  subjectAltNames: readonly GeneralName[],
  endEntity: boolean,
): string | undefined {
  const names = constrainedNames(subject, subjectAltNames, endEntity);
  if (names.length * (constraints.permitted.length + constraints.excluded.length) > MAX_COMPARISONS)
    return "there are too many names to hold against the CA's name constraints";
  const forbidden = names.find((name) => isForbidden(name, constraints));
  return forbidden && `${JSON.stringify(forbidden.text)} lies outside of the CA's name constraints`;
}

function isForbidden(name: ConstrainedName, constraints: NameConstraints): boolean {
  const permitted = constraints.permitted.filter((base) => sameKind(base, name));
  const excluded = constraints.excluded.filter((base) => sameKind(base, name));
  if (permitted.length + excluded.length === 0) return false;
  // RFC 5280 §4.2.1.10: a URI whose host is not a domain name fails every constraint on URIs
  if (name.kind === 'other' || (name.kind === 'uri' && uriHost(name.value) === undefined)) return true;
  if (permitted.length > 0 && !permitted.some((base) => isWithin(name, base))) return true;
  return excluded.some((base) => isWithin(name, base));
}

function sameKind(base: Base, name: ConstrainedName): boolean {
  return base.kind === 'other' && name.kind === 'other' ? base.tag === name.tag : base.kind === name.kind;
}

function constrainedNames(
  subject: Name,
  subjectAltNames: readonly GeneralName[],
  endEntity: boolean,
): ConstrainedName[] {
  const names: ConstrainedName[] = subjectAltNames.map((name) => {
    const text = formatGeneralName(name);
    if (name.kind !== 'other') return { ...name, text };
    return name.tag === DIRECTORY_NAME ? directory(parseName(parseDer(name.der).value)) : { ...name, text };
  });
  if (subject.rdns.length > 0) names.push(directory(subject));
  for (const value of attributeValues(subject, OID.emailAddress))
    names.push({ kind: 'email', value, text: `emailAddress=${value}` });
  if (!endEntity || subjectAltNames.some(({ kind }) => kind === 'dns')) return names;
  for (const value of attributeValues(subject, OID.commonName))
    if (HOST_NAME.test(value)) names.push({ kind: 'dns', value, text: `CN=${value}` });
  return names;
}

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?';
/** What OpenSSL takes for a host name in a CN: two labels or more. */
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})+$`);

const directory = (name: Name): ConstrainedName => ({
  kind: 'directory',
  rdns: foldedRdns(name),
  text: formatName(name),
});

function isWithin(name: ConstrainedName, base: Base): boolean {
  switch (name.kind) {
    case 'dns':
      return base.kind === 'dns' && dnsWithin(name.value, base.value);
    case 'email':
      return base.kind === 'email' && emailWithin(name.value, base.value);
    case 'uri':
      return base.kind === 'uri' && hostWithin(uriHost(name.value) ?? '', base.value);
    case 'ip':
      return base.kind === 'ip' && addressWithin(name.bytes, base.address, base.mask);
    case 'directory':
      return base.kind === 'directory' && base.rdns.every((rdn, i) => rdn === name.rdns[i]);
    case 'other':
      return false;
  }
}

/** The base itself and everything below it; a base that begins with a dot: only what is below it. */
function dnsWithin(value: string, base: string): boolean {
  if (base === '') return true;
  const name = value.toLowerCase();
  const suffix = base.toLowerCase();
  return suffix.startsWith('.') ? name.endsWith(suffix) : name === suffix || name.endsWith(`.${suffix}`);
}

/** A host exactly, or with a leading dot the hosts of a domain. */
function hostWithin(host: string, base: string): boolean {
  const name = host.toLowerCase();
  const suffix = base.toLowerCase();
  return suffix.startsWith('.') ? name.endsWith(suffix) : name === suffix;
}

/** A mailbox (its local part with case), all mailboxes of a host, or with a leading dot of a domain's hosts. */
function emailWithin(value: string, base: string): boolean {
  const at = value.lastIndexOf('@');
  const host = value.slice(at + 1);
  const baseAt = base.lastIndexOf('@');
  if (baseAt < 0) return base === '' || hostWithin(host, base);
  if (baseAt > 0 && value.slice(0, at) !== base.slice(0, baseAt)) return false;
  return hostWithin(host, base.slice(baseAt + 1));
}

/** The host name of a URI's authority; undefined where there is none, or it is an address. */
function uriHost(uri: string): string | undefined {
  const host = /^[^:/?#]+:\/\/(?:[^/?#@]*@)?([^/?#:[\]]+)(?::\d*)?(?:[/?#]|$)/.exec(uri)?.[1];
  return host === undefined || /^[\d.]+$/.test(host) ? undefined : host;
}

function addressWithin(address: Buffer, base: Buffer, mask: Buffer): boolean {
  if (address.length !== base.length) return false;
  return address.every((octet, i) => (octet & (mask[i] ?? 255)) === ((base[i] ?? 0) & (mask[i] ?? 255)));
}
