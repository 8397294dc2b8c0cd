/** GeneralNames of a subjectAltName (RFC 5280 §4.2.1.6). */
import { isIPv4, isIPv6 } from 'node:net';

import {
  DerError,
  Tag,
  children,
  contextPrimitive,
  firstMatch,
  implicitPrimitive,
  parseDer,
  sequence,
  tlv,
  type DerElement,
} from '../der/der.ts';
import { InputError } from '../input-error.ts';

export type GeneralName =
  | { readonly kind: 'dns' | 'email' | 'uri'; readonly value: string }
  | {
      readonly kind: 'ip';
      /** Canonical text (dotted quad, RFC 5952). */ readonly value: string;
      readonly bytes: Buffer;
    }
  | { readonly kind: 'other'; /** Identifier octet. */ readonly tag: number; readonly der: Buffer };

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
    default:
      if ((element.tag & 0xc0) !== 0x80 || (element.tag & 0x1f) > REGISTERED_ID)
        throw new DerError('GeneralName: unexpected tag');
      return { kind: 'other', tag: element.tag, der: element.raw };
  }
}

export function encodeGeneralNames(names: readonly GeneralName[]): Buffer {
  return sequence(...names.map(encodeGeneralName));
}

/** @throws InputError for a DNS, email or URI value that is not ASCII */
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
    case 'other':
      return name.der;
  }
}

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

/** `DNS:a`, `IP:1.2.3.4`, `email:a@b`, `URI:…`; other kinds as `other:` and hex of the DER. */
export function formatGeneralName(name: GeneralName): string {
  switch (name.kind) {
    case 'dns':
      return `DNS:${name.value}`;
    case 'email':
      return `email:${name.value}`;
    case 'uri':
      return `URI:${name.value}`;
    case 'ip':
      return `IP:${name.value}`;
    case 'other':
      return `other:${name.der.toString('hex')}`;
  }
}

/** Whether two lists contain the same names in any order. DNS names and email domains are case-insensitive. */
export function sameGeneralNames(a: readonly GeneralName[], b: readonly GeneralName[]): boolean {
  const left = new Set(a.map(comparable));
  const right = new Set(b.map(comparable));
  return left.size === right.size && [...left].every((name) => right.has(name));
}

/** A lookup key that is equal for lists that are {@link sameGeneralNames}. */
export function comparableGeneralNames(names: readonly GeneralName[]): string {
  return JSON.stringify([...new Set(names.map(comparable))].sort());
}

function comparable(name: GeneralName): string {
  if (name.kind === 'dns') return formatGeneralName(name).toLowerCase();
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
  return labels.every((one) => label.test(one))
    ? undefined
    : 'is not a host name: each label has 1 to 63 letters, digits and inner hyphens';
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

export function addressWithin(address: Buffer, base: Buffer, mask: Buffer): boolean {
  if (address.length !== base.length) return false;
  return address.every((octet, i) => (octet & (mask[i] ?? 255)) === ((base[i] ?? 0) & (mask[i] ?? 255)));
}

export const networkMask = (octets: number, bits: number): Buffer =>
  Buffer.from(Array.from({ length: octets }, (_, i) => 0xff00 >> Math.min(8, Math.max(0, bits - 8 * i))));
