/** The nameConstraints extension (RFC 5280 §4.2.1.10): parsing, encoding and checks. */
import { isIP } from 'node:net';
import {
  DerError,
  DerReader,
  retagged,
  Tag,
  children,
  contextConstructed,
  contextPrimitive,
  parseDer,
  implicitPrimitive,
  readInteger,
  readString,
  sequence,
  tlv,
  type DerElement,
} from '../der/der.ts';
import { InputError } from '../input-error.ts';
import { foldedRdns, attributeValues, formatName, parseName, type Name } from './name.ts';
import {
  addressWithin,
  directoryName,
  encodeGeneralName,
  formatGeneralName,
  ipAddress,
  networkMask,
  type GeneralName,
} from './general-name.ts';
import { OID } from '../der/oids.ts';

type Base =
  | { readonly kind: 'dns' | 'email' | 'uri'; readonly value: string }
  | { readonly kind: 'ip'; readonly address: Buffer; readonly mask: Buffer }
  | { readonly kind: 'directory'; readonly rdns: readonly string[] }
  | { readonly kind: 'other'; readonly tag: number };

interface NameConstraints {
  readonly permitted: readonly Base[];
  readonly excluded: readonly Base[];
}

/** A name to be checked against the constraints of its kind; `text` is for messages. */
type ConstrainedName = { readonly text: string } & (
  | { readonly kind: 'dns' | 'email' | 'uri'; readonly value: string }
  | { readonly kind: 'ip'; readonly bytes: Buffer }
  | { readonly kind: 'directory'; readonly rdns: readonly string[] }
  | { readonly kind: 'other'; readonly tag: number }
);

const OTHER_NAME = contextConstructed(0);
const DIRECTORY_NAME = contextConstructed(4);

/** Limit for names × subtrees: a hostile certificate must not cost more than its signature. */
const MAX_COMPARISONS = 1 << 14;

/**
 * @throws DerError, also for values that RFC 5280 forbids or that cannot be checked: no subtrees, an empty list,
 * `minimum` or `maximum`, a base that is not a host, mailbox or network
 */
export function parseNameConstraints(value: Buffer): NameConstraints {
  const reader = DerReader.of(value, 'NameConstraints');
  const permitted = reader.optional(contextConstructed(0), 'permittedSubtrees');
  const excluded = reader.optional(contextConstructed(1), 'excludedSubtrees');
  reader.end();
  if (permitted === undefined && excluded === undefined) throw new DerError('NameConstraints: empty');
  return { permitted: subtrees(permitted), excluded: subtrees(excluded) };
}

function subtrees(list: DerElement | undefined): Base[] {
  if (list === undefined) return [];
  if (list.value.length === 0) throw new DerError('GeneralSubtrees: empty');
  return children(list.value, 'GeneralSubtree').map((element) => {
    const reader = DerReader.of(element.raw, 'GeneralSubtree');
    const base = parseBase(reader.next(undefined, 'base'));
    const minimum = reader.optional(contextPrimitive(0), 'minimum');
    if (minimum !== undefined && readInteger(retagged(minimum, Tag.INTEGER), 'minimum') !== 0)
      throw new DerError('GeneralSubtree.minimum: not 0');
    if (!reader.done) throw new DerError('GeneralSubtree.maximum: not supported');
    return base;
  });
}

function parseBase(element: DerElement): Base {
  const ia5 = (): string => readString(retagged(element, Tag.IA5_STRING), 'GeneralSubtree.base');
  switch (element.tag) {
    case contextPrimitive(1): {
      const value = ia5();
      const at = value.lastIndexOf('@') + 1;
      if (at > 1 && !isMailbox(value)) throw new DerError('GeneralSubtree.base: not a mailbox');
      return { kind: 'email', value: value.slice(0, at) + hostBase(value.slice(at)) };
    }
    case contextPrimitive(2):
      return { kind: 'dns', value: hostBase(ia5()) };
    case contextPrimitive(6):
      if (element.value.length === 0) throw new DerError('GeneralSubtree.base: not a host');
      return { kind: 'uri', value: hostBase(ia5()) };
    case contextPrimitive(7):
      return network(element.value);
    case DIRECTORY_NAME:
      return { kind: 'directory', rdns: foldedRdns(parseName(element.value)) };
    default:
      return { kind: 'other', tag: element.tag };
  }
}

/** A lowercase host, or a domain with a leading dot; empty means all hosts. @throws DerError */
function hostBase(text: string): string {
  if (text !== '' && !isHost(text.replace(/^\./, ''))) throw new DerError('GeneralSubtree.base: not a host');
  return text.toLowerCase();
}

/** RFC 5280 §4.2.1.10: an address and a mask as in RFC 4632 (ones before zeros). @throws DerError */
function network(octets: Buffer): Base {
  const half = octets.length / 2;
  if (half !== 4 && half !== 16) throw new DerError('GeneralSubtree.base: not an address and a mask');
  const mask = octets.subarray(half);
  if (!/^1*0*$/.test([...mask].map((octet) => octet.toString(2).padStart(8, '0')).join('')))
    throw new DerError('GeneralSubtree.base: not the mask of a network');
  return { kind: 'ip', address: octets.subarray(0, half), mask };
}

/**
 * Why the constraints of a CA forbid the names of a certificate below it, or undefined. An unsupported kind of name is
 * forbidden if it is both constrained and present. A malformed name (a trailing dot, a percent-encoded host) is
 * forbidden, because other software may read it differently.
 * @param endEntity the last certificate of the path. Without a DNS name, a CN that looks like one counts as one, as in
 * OpenSSL.
 */
export function nameConstraintProblem(
  constraints: NameConstraints,
  subject: Name,
  subjectAltNames: readonly GeneralName[],
  endEntity: boolean,
): string | undefined {
  const names = constrainedNames(subject, subjectAltNames, endEntity);
  if (names.length * (constraints.permitted.length + constraints.excluded.length) > MAX_COMPARISONS)
    return "there are too many names to check against the CA's name constraints";
  const forbidden = names.find((name) => isForbidden(name, constraints));
  return forbidden && `${JSON.stringify(forbidden.text)} is outside the CA's name constraints`;
}

function isForbidden(name: ConstrainedName, constraints: NameConstraints): boolean {
  const permitted = constraints.permitted.filter((base) => sameKind(base, name));
  const excluded = constraints.excluded.filter((base) => sameKind(base, name));
  if (permitted.length + excluded.length === 0) return false;
  if (!isComparable(name)) return true;
  if (permitted.length > 0 && !permitted.some((base) => isWithin(name, base))) return true;
  return excluded.some((base) => isWithin(name, base) || isCoveredByWildcard(name, base));
}

function isComparable(name: ConstrainedName): boolean {
  switch (name.kind) {
    case 'dns':
      return isHost(name.value.replace(/^\*\./, ''));
    case 'email':
      return isMailbox(name.value);
    case 'uri':
      // RFC 5280 §4.2.1.10: a URI whose host is not a domain name violates every constraint on URIs.
      return uriHost(name.value) !== undefined;
    case 'ip':
    case 'directory':
      return true;
    case 'other':
      return false;
  }
}

/** Whether the wildcard covers the base: `*.example.com` covers the excluded `bar.example.com`. */
function isCoveredByWildcard(name: ConstrainedName, base: Base): boolean {
  if (name.kind !== 'dns' || base.kind !== 'dns' || !name.value.startsWith('*.')) return false;
  return /^\.?[^.]+(\..*)$/.exec(base.value)?.[1] === name.value.slice(1).toLowerCase();
}

function sameKind(base: Base, name: ConstrainedName): boolean {
  return base.kind === 'other' && name.kind === 'other' ? base.tag === name.tag : base.kind === name.kind;
}

function constrainedNames(
  subject: Name,
  subjectAltNames: readonly GeneralName[],
  endEntity: boolean,
): ConstrainedName[] {
  const names: ConstrainedName[] = subjectAltNames.flatMap((name) => {
    const text = formatGeneralName(name);
    const inDirectory = directoryName(name);
    switch (name.kind) {
      case 'dns':
      case 'email':
      case 'uri':
        return { kind: name.kind, value: name.value, text };
      case 'ip':
        return { ...name, text };
      case 'other':
        return inDirectory === undefined ? { kind: 'other', tag: name.tag, text } : directory(inDirectory);
      case 'registered_id':
        return { kind: 'other', tag: contextPrimitive(8), text };
      default: {
        const otherName = { kind: 'other', tag: OTHER_NAME, text } as const;
        const mailbox = name.kind === 'other_name' ? smtpUtf8Mailbox(name.value) : undefined;
        return mailbox === undefined ? otherName : [otherName, { kind: 'email', value: mailbox, text }];
      }
    }
  });
  if (subject.rdns.length > 0) names.push(directory(subject));
  for (const value of attributeValues(subject, OID.emailAddress))
    names.push({ kind: 'email', value, text: `emailAddress=${value}` });
  if (!endEntity || subjectAltNames.some(({ kind }) => kind === 'dns')) return names;
  for (const value of attributeValues(subject, OID.commonName))
    if (HOST_NAME.test(value)) names.push({ kind: 'dns', value, text: `CN=${value}` });
  return names;
}

/** RFC 9598 §6: constraints on mailboxes also apply to internationalized ones. @throws DerError */
function smtpUtf8Mailbox(otherName: string): string | undefined {
  const [type, hex = ''] = otherName.split(':');
  if (type !== OID.smtpUTF8Mailbox) return undefined;
  return readString(parseDer(Buffer.from(hex, 'hex'), Tag.UTF8_STRING), 'SmtpUTF8Mailbox');
}

/** Letters, digits and hyphens, plus the underscores that are common in practice. */
const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const HOST = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
const isHost = (text: string): boolean => text.length <= 253 && HOST.test(text);

/**
 * A CN that looks like a host name: two or more labels, as in OpenSSL, with or without a wildcard or a trailing dot.
 */
const HOST_NAME = new RegExp(`^(?:\\*\\.)?${LABEL}(?:\\.${LABEL})+\\.?$`);

const isMailbox = (text: string): boolean =>
  /^[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]+@/.test(text) && isHost(text.slice(text.indexOf('@') + 1));

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

/** The base and everything below it; with a leading dot only what is below it. */
function dnsWithin(value: string, base: string): boolean {
  if (base === '') return true;
  const name = value.toLowerCase();
  return base.startsWith('.') ? name.endsWith(base) : name === base || name.endsWith(`.${base}`);
}

/** Exactly the host or, with a leading dot, the hosts of the domain. */
function hostWithin(host: string, base: string): boolean {
  const name = host.toLowerCase();
  return base.startsWith('.') ? name.endsWith(base) : name === base;
}

/** One mailbox (local part case-sensitive), all mailboxes of a host or, with a leading dot, of a domain's hosts. */
function emailWithin(value: string, base: string): boolean {
  const at = value.lastIndexOf('@');
  const host = value.slice(at + 1);
  const baseAt = base.lastIndexOf('@');
  if (baseAt < 0) return base === '' || hostWithin(host, base);
  if (baseAt > 0 && value.slice(0, at) !== base.slice(0, baseAt)) return false;
  return hostWithin(host, base.slice(baseAt + 1));
}

/** The host name of a URI's authority (RFC 3986 §3.2); undefined if it is absent or an address. */
function uriHost(uri: string): string | undefined {
  const host = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?([^/?#:]+)(?::\d*)?(?:[/?#]|$)/.exec(
    uri,
  )?.[1];
  return host === undefined || !isHost(host) || /^[\d.]+$/.test(host) ? undefined : host;
}

/** Names that a CA may certify: hosts with their subdomains, networks as `10.0.0.0/8`, mail and URI hosts. */
export interface PermittedNames {
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  readonly email?: readonly string[];
  readonly uri?: readonly string[];
}

/**
 * Hosts that never exist (RFC 2606 §2), both permitted and excluded to exclude all: in OpenSSL an empty base excludes
 * nothing, and GnuTLS only reads excluded URIs.
 */
const NO_HOST = '.invalid';

/**
 * DER NameConstraints that permit exactly these names of the four kinds. Does not constrain subject names.
 * @throws InputError for a value that is not a host or a network
 */
export function encodeNameConstraints({ dns = [], ip = [], email = [], uri = [] }: PermittedNames): Buffer {
  const anyOf = (values: readonly string[]): readonly string[] => (values.length === 0 ? [NO_HOST] : values);
  const permitted = [
    ...dns.map((value) => encodeGeneralName({ kind: 'dns', value: hostOf(value, false) })),
    ...ip.map(networkOf),
    ...anyOf(email).map((value) => encodeGeneralName({ kind: 'email', value: hostOf(value) })),
    ...anyOf(uri).map((value) => encodeGeneralName({ kind: 'uri', value: hostOf(value) })),
  ];
  const versions = new Set(ip.map((value) => isIP(value.replace(/\/.*$/, ''))));
  const isExcluded = (kind: 'email' | 'uri', values: readonly string[]): readonly Buffer[] =>
    values.length === 0 ? [encodeGeneralName({ kind, value: NO_HOST })] : [];
  const excluded = [
    ...isExcluded('email', email),
    ...isExcluded('uri', uri),
    ...(dns.length === 0 ? [encodeGeneralName({ kind: 'dns', value: '' })] : []),
    ...[4, 6]
      .filter((version) => !versions.has(version))
      .map((version) => networkOf(version === 4 ? '0.0.0.0/0' : '::/0')),
  ];
  const trees = (number: number, bases: readonly Buffer[]): Buffer[] =>
    bases.length === 0 ? [] : [tlv(contextConstructed(number), ...bases.map((base) => sequence(base)))];
  return sequence(...trees(0, permitted), ...trees(1, excluded));
}

function hostOf(text: string, isDomainAllowed = true): string {
  if (!isHost(isDomainAllowed ? text.replace(/^\./, '') : text)) throw new InputError(`"${text}" is not a host name`);
  return text.toLowerCase();
}

/** A GeneralName of an address and its mask. */
function networkOf(text: string): Buffer {
  const [host = '', prefix] = text.split('/');
  const { bytes } = ipAddress(host);
  const bits = prefix === undefined ? bytes.length * 8 : /^\d{1,3}$/.test(prefix) ? Number(prefix) : NaN;
  if (!(bits <= bytes.length * 8)) throw new InputError(`"${text}" is not a network such as 10.0.0.0/8`);
  const mask = networkMask(bytes.length, bits);
  if (bytes.some((octet, index) => (octet & ~mask.readUInt8(index) & 0xff) !== 0))
    throw new InputError(`"${text}" has address bits beyond its prefix length`);
  return implicitPrimitive(7, Buffer.concat([bytes, mask]));
}
