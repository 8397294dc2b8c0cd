/** GeneralNames of a subjectAltName (RFC 5280 §4.2.1.6). */
import { isIPv4, isIPv6 } from 'node:net';

import {
  DerError,
  retagged,
  Tag,
  children,
  contextPrimitive,
  firstMatch,
  implicitPrimitive,
  parseDer,
  sequence,
  tlv,
  oid,
  readOid,
  unlessMalformed,
  contextConstructed,
  type DerElement,
} from '../der/der.ts';
import { InputError } from '../input-error.ts';
import { UNSAFE } from './attribute-syntax.ts';
import { type Name, parseName } from './name.ts';
import { encodeOtherName, otherNameKind, readOtherName, splitAtColon } from './other-names.ts';

/** Kinds of names, as configuration calls them; in addition `other:OID` for a further type of otherName. */
export const SAN_KINDS = [
  'dns',
  'ip',
  'email',
  'uri',
  'upn',
  'hardware_module',
  'permanent_identifier',
  'srv',
  'registered_id',
] as const;
export type SanKind = (typeof SAN_KINDS)[number];
/** Kinds whose name is its text. */
export type TextKind = Exclude<SanKind, 'ip'> | 'other_name';

export type GeneralName =
  | { readonly kind: TextKind; /** `OID:HEX` of an `other_name`: the DER of its value. */ readonly value: string }
  | {
      readonly kind: 'ip';
      /** Canonical text (dotted quad, RFC 5952). */ readonly value: string;
      readonly bytes: Buffer;
    }
  /** A kind that is only read, such as a directoryName. */
  | { readonly kind: 'other'; /** Identifier octet. */ readonly tag: number; readonly der: Buffer };

const OTHER_NAME = 0;
const DIRECTORY_NAME = 4;
const RFC822_NAME = 1;
const DNS_NAME = 2;
const URI = 6;
const IP_ADDRESS = 7;
const REGISTERED_ID = 8;

/** @throws DerError for malformed input, also for an empty list */
export function parseGeneralNames(der: Buffer): GeneralName[] {
  const elements = children(parseDer(der, Tag.SEQUENCE, 'GeneralNames').value, 'GeneralName');
  if (elements.length === 0) throw new DerError('GeneralNames: empty');
  return elements.map(parseGeneralName);
}

/** Octets above 0x7F are read as Latin-1; {@link generalNameProblem} finds them. @throws DerError */
export function parseGeneralName(element: DerElement): GeneralName {
  switch (element.tag) {
    case contextPrimitive(RFC822_NAME):
      return { kind: 'email', value: element.value.toString('latin1') };
    case contextPrimitive(DNS_NAME):
      return { kind: 'dns', value: element.value.toString('latin1') };
    case contextPrimitive(URI):
      return { kind: 'uri', value: element.value.toString('latin1') };
    case contextPrimitive(IP_ADDRESS):
      return { kind: 'ip', value: formatAddress(element.value), bytes: element.value };
    case contextConstructed(OTHER_NAME):
      return unlessMalformed(() => readOtherName(element), undefined) ?? other(element);
    case contextPrimitive(REGISTERED_ID): {
      const value = unlessMalformed(() => readOid(retagged(element, Tag.OID)), undefined);
      return value === undefined ? other(element) : { kind: 'registered_id', value };
    }
    default:
      if ((element.tag & 0xc0) !== 0x80 || (element.tag & 0x1f) > REGISTERED_ID)
        throw new DerError('GeneralName: unexpected tag');
      return other(element);
  }
}

/** The name in a directoryName; undefined for another kind. @throws DerError */
export const directoryName = (name: GeneralName): Name | undefined =>
  name.kind === 'other' && name.tag === contextConstructed(DIRECTORY_NAME)
    ? parseName(parseDer(name.der).value)
    : undefined;

const other = ({ tag, raw: der }: DerElement): GeneralName => ({ kind: 'other', tag, der });

export function encodeGeneralNames(names: readonly GeneralName[]): Buffer {
  return sequence(...names.map(encodeGeneralName));
}

/** @throws InputError for a value that its type cannot hold */
export function encodeGeneralName(name: GeneralName): Buffer {
  switch (name.kind) {
    case 'email':
      return encodeIa5(RFC822_NAME, name.value);
    case 'dns':
      return encodeIa5(DNS_NAME, name.value);
    case 'uri':
      return encodeIa5(URI, name.value);
    case 'ip':
      return implicitPrimitive(IP_ADDRESS, name.bytes);
    case 'registered_id':
      return implicitPrimitive(REGISTERED_ID, parseDer(oid(name.value)).value);
    case 'other':
      return name.der;
    default:
      return encodeOtherName(name.kind, name.value);
  }
}

/** The kind as in `ca.profile.san.allowed`; undefined for one that cannot be issued. */
export function sanKind(name: GeneralName): string | undefined {
  if (name.kind === 'other_name') return `other:${splitAtColon(name.value)[0]}`;
  return name.kind === 'other' ? undefined : name.kind;
}

/** A well-formed name from its text, without prefix. @throws InputError that says what is wrong */
export function generalName(kind: SanKind | 'other_name', text: string): GeneralName {
  if (kind === 'ip') return ipAddress(text);
  const hasHex = kind === 'hardware_module' || kind === 'other_name';
  const name: GeneralName = { kind, value: hasHex ? text.toLowerCase() : text };
  const problem = generalNameProblem(name);
  if (problem !== undefined) throw new InputError(problem);
  return name;
}

/** A name in the form of {@link formatGeneralName}. @throws InputError */
export function parseGeneralNameText(text: string): GeneralName {
  const [prefix, value] = text.includes(':') ? splitAtColon(text) : ['', ''];
  const kind = prefix === 'other' ? 'other_name' : SAN_KINDS.find((kind) => (PREFIXES[kind] ?? kind) === prefix);
  if (kind === undefined) throw new InputError('is not a name of a known kind');
  return generalName(kind, value);
}

const PREFIXES: Readonly<Partial<Record<TextKind | 'ip', string>>> = {
  dns: 'DNS',
  ip: 'IP',
  uri: 'URI',
  other_name: 'other',
};

function encodeIa5(tag: number, value: string): Buffer {
  if (!/^[\x00-\x7f]*$/.test(value))
    throw new InputError('a subject alternative name contains characters outside ASCII');
  return tlv(contextPrimitive(tag), Buffer.from(value, 'latin1'));
}

/** An iPAddress from its text. @throws InputError */
export function ipAddress(text: string): Extract<GeneralName, { readonly kind: 'ip' }> {
  const bytes = addressBytes(text);
  return { kind: 'ip', value: formatAddress(bytes), bytes };
}

/** Names that are only read, by the number of their tag (RFC 5280 §4.2.1.6). */
const READ_ONLY = ['other_name', '', '', 'x400_address', 'directory_name', 'edi_party_name', '', '', 'registered_id'];

/** `DNS:a`, `IP:1.2.3.4`, `email:a@b`, `URI:…`, `upn:…`, `other:OID:HEX` …; names that are only read have the hex of the DER. */
export function formatGeneralName(name: GeneralName): string {
  if (name.kind === 'other') return `${READ_ONLY[name.tag & 0x1f] ?? ''}:${name.der.toString('hex')}`;
  return `${PREFIXES[name.kind] ?? name.kind}:${name.value}`;
}

/** Whether two lists contain the same names in any order. DNS and SRV names, email domains, and schemes and hosts of URIs are case-insensitive. */
export function sameGeneralNames(a: readonly GeneralName[], b: readonly GeneralName[]): boolean {
  const left = new Set(a.map(comparable));
  const right = new Set(b.map(comparable));
  return left.size === right.size && [...left].every((name) => right.has(name));
}

/** A lookup key that is equal for lists that are {@link sameGeneralNames}. */
export function comparableGeneralNames(names: readonly GeneralName[]): string {
  return JSON.stringify([...new Set(names.map(comparable))].sort());
}

/** RFC 5280 §7.4: case does not matter in them. A URI with a user is left as it is. */
const SCHEME_AND_HOST = /^[^:/?#]+:(?:\/\/[^/?#@]*(?=[/?#]|$))?/;

function comparable(name: GeneralName): string {
  if (name.kind === 'dns' || name.kind === 'srv') return formatGeneralName(name).toLowerCase();
  if (name.kind === 'uri') return `uri:${name.value.replace(SCHEME_AND_HOST, (part) => part.toLowerCase())}`;
  if (name.kind !== 'email') return formatGeneralName(name);
  const at = name.value.lastIndexOf('@') + 1;
  return `email:${name.value.slice(0, at)}${name.value.slice(at).toLowerCase()}`;
}

/**
 * What is wrong with a name's form (RFC 5280 §4.2.1.6), or undefined. Names the first character that is not allowed, and
 * its place, counted from 1. Underscores in dNSNames are for {@link underscoreProblem}.
 */
export function generalNameProblem(name: GeneralName): string | undefined {
  switch (name.kind) {
    case 'dns':
      return hostProblem(name.value, 0, '_');
    case 'email':
      return emailProblem(name.value);
    case 'uri':
      return uriProblem(name.value);
    case 'ip':
      return name.bytes.length === 4 || name.bytes.length === 16
        ? undefined
        : `has ${name.bytes.length} octets instead of 4 or 16`;
    case 'other':
      return undefined;
    default:
      return furtherProblem(name);
  }
}

function furtherProblem(name: { readonly kind: TextKind; readonly value: string }): string | undefined {
  const { kind, value } = name;
  if (kind === 'other_name') {
    const known = otherNameKind(splitAtColon(value)[0]);
    if (known !== undefined) return `is not a valid ${known}: its value has another type`;
  }
  if (kind === 'upn' && value === '') return 'is empty';
  const wrong = value.isWellFormed() ? firstMatch(value, UNSAFE) : 'text that is not Unicode';
  if (wrong !== undefined) return `contains ${wrong}, which is a control or invisible character`;
  if (kind === 'srv') {
    const service = /^_[A-Za-z0-9-]+\./.exec(value)?.[0].length;
    return service === undefined
      ? 'is not a service and a host, such as _est.example.com'
      : hostProblem(value, service, '');
  }
  try {
    encodeGeneralName(name);
    return undefined;
  } catch (error) {
    if (error instanceof InputError) return `is invalid: ${error.message}`;
    throw error;
  }
}

/** RFC 5280 §4.2.1.6 forbids underscores in dNSNames; `ca.profile.san.dns_underscore` allows them. */
export function underscoreProblem(name: GeneralName): string | undefined {
  const found = name.kind === 'dns' ? firstMatch(name.value, /_/) : undefined;
  return found && `contains ${found}: RFC 5280 forbids it, and ca.profile.san.dns_underscore = true allows it`;
}

/**
 * RFC 1034 §3.5 preferred name syntax (leading digits per RFC 1123), with `*` as the whole leftmost label.
 * @param from where the host begins in the value
 */
function hostProblem(value: string, from: number, further: '' | '_'): string | undefined {
  const host = value.slice(from);
  if (host === '') return 'is empty';
  if (host.length > 253) return 'is longer than 253 characters';
  // Includes leading zeros, which some software accepts.
  if (/^\d+(\.\d+){3}$/.test(host)) return 'is an IP address, which must be an iPAddress';
  const wrong = firstMatch(value, new RegExp(`[^A-Za-z0-9.*${further}-]`, 'u'), from);
  if (wrong !== undefined)
    return `contains ${wrong}, which is not a letter, digit or hyphen; internationalized names are written in A-labels (xn--…)`;
  const labels = host.split('.');
  if (labels[0] === '*' && labels.length > 2) labels.shift();
  const label = new RegExp(`^[A-Za-z0-9${further}]([A-Za-z0-9${further}-]{0,61}[A-Za-z0-9${further}])?$`);
  return labels.every((part) => label.test(part))
    ? undefined
    : `is not a host name: each label has 1 to 63 letters, digits and inner hyphens${host.endsWith('.') ? ', and no dot follows the last' : ''}`;
}

function emailProblem(value: string): string | undefined {
  const at = value.lastIndexOf('@');
  const local = value.slice(0, at);
  if (at < 1 || local.length > 64) return 'is not a mailbox (local-part@domain)';
  const wrong = firstMatch(local, /[^A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]/u);
  if (wrong !== undefined) return `contains ${wrong}, which a mailbox cannot contain`;
  if (/^\.|\.\.|\.$/.test(local)) return 'is not a mailbox (local-part@domain)';
  return value.startsWith('*', at + 1) ? 'has a wildcard domain' : hostProblem(value, at + 1, '');
}

/** RFC 5280 §4.2.1.6: the URI is absolute, and its authority is a host. */
function uriProblem(value: string): string | undefined {
  const wrong = firstMatch(value, /[^\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]/u);
  if (wrong !== undefined) return `contains ${wrong}, which must be percent-encoded in a URI`;
  const percent = firstMatch(value, /%(?![0-9A-Fa-f]{2})/u);
  if (percent !== undefined) return `contains an invalid percent-encoding: ${percent}`;
  if (!/^[A-Za-z][A-Za-z0-9+.-]*:./.test(value)) return 'is not an absolute URI';
  if (
    /^[^:]*:\/\//.test(value) &&
    !/^[^:]*:\/\/([^/?#@]*@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d*)?([/?#]|$)/.test(value)
  )
    return 'has an authority without a host';
  return undefined;
}

// --- addresses -------------------------------------------------------------------------------------------------

function addressBytes(text: string): Buffer {
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  if (!isIPv6(text) || text.includes('%')) throw new InputError(`"${text}" is not an IP address`);
  const dotted = /\d+\.\d+\.\d+\.\d+$/.exec(text)?.[0];
  const tail = dotted === undefined ? undefined : addressBytes(dotted);
  const hex = tail === undefined ? text : text.slice(0, -(dotted ?? '').length) + `${word(tail, 0)}:${word(tail, 2)}`;
  const [head = '', rest] = hex.split('::');
  const words = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const left = words(head);
  const right = words(rest ?? '');
  const zeros = rest === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0');
  const out = Buffer.alloc(16);
  [...left, ...zeros, ...right].forEach((group, i) => out.writeUInt16BE(parseInt(group, 16), i * 2));
  return out;
}

const word = (bytes: Buffer, offset: number): string => bytes.readUInt16BE(offset).toString(16);

/** Of another length than 4 or 16 octets: hex. */
export function formatAddress(bytes: Buffer): string {
  if (bytes.length === 4) return [...bytes].join('.');
  if (bytes.length !== 16) return bytes.toString('hex');
  const groups = Array.from({ length: 8 }, (_, i) => word(bytes, i * 2)).join(':');
  // RFC 5952 §4.2: the first of the longest runs of two or more zero groups becomes "::".
  const runs = groups.match(/\b0(:0)+\b/g) ?? [];
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '');
  if (longest === '') return groups;
  const at = groups.search(new RegExp(`\\b${longest}\\b`));
  return `${groups.slice(0, at).replace(/:$/, '')}::${groups.slice(at + longest.length).replace(/^:/, '')}`;
}

/** The IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), in whichever form; undefined for another text. */
export function mappedIPv4(text: string): string | undefined {
  if (!/ffff:/i.test(text) || !isIPv6(text) || text.includes('%')) return undefined;
  const bytes = addressBytes(text);
  const isMapped = bytes.subarray(0, 10).every((octet) => octet === 0) && bytes.readUInt16BE(10) === 0xffff;
  return isMapped ? formatAddress(bytes.subarray(12)) : undefined;
}

export function addressWithin(address: Buffer, base: Buffer, mask: Buffer): boolean {
  if (address.length !== base.length) return false;
  return address.every((octet, i) => (octet & (mask[i] ?? 255)) === ((base[i] ?? 0) & (mask[i] ?? 255)));
}

export const networkMask = (octets: number, bits: number): Buffer =>
  Buffer.from(Array.from({ length: octets }, (_, i) => 0xff00 >> Math.min(8, Math.max(0, bits - 8 * i))));
