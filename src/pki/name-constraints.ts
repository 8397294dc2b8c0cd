/** nameConstraints of a CA certificate (RFC 5280 §4.2.1.10), applied to the names of what it signs. */
import {
  DerError,
  DerReader,
  Tag,
  children,
  contextConstructed,
  contextPrimitive,
  parseDer,
  readString,
} from './der.ts';
import { formatGeneralName, type GeneralName } from './general-name.ts';
import { formatName, parseName, type AttributeTypeAndValue, type Name } from './name.ts';

type Subtree =
  | { readonly kind: 'dns' | 'email' | 'uri'; readonly value: string }
  | { readonly kind: 'ip'; readonly address: Buffer; readonly mask: Buffer }
  | { readonly kind: 'directory'; readonly name: Name };

export interface NameConstraints {
  readonly permitted: readonly Subtree[];
  readonly excluded: readonly Subtree[];
}

/** @throws DerError, also on a constraint of a kind that is not understood: it must not be passed over. */
export function parseNameConstraints(value: Buffer): NameConstraints {
  const reader = DerReader.of(value, 'NameConstraints');
  const permitted = reader.optional(contextConstructed(0), 'permittedSubtrees');
  const excluded = reader.optional(contextConstructed(1), 'excludedSubtrees');
  reader.end();
  return {
    permitted: permitted === undefined ? [] : parseSubtrees(permitted.value),
    excluded: excluded === undefined ? [] : parseSubtrees(excluded.value),
  };
}

function parseSubtrees(value: Buffer): Subtree[] {
  return children(value, 'GeneralSubtree').map((element) => {
    if (element.tag !== Tag.SEQUENCE) throw new DerError('GeneralSubtree: unexpected tag');
    const reader = new DerReader(element.value, 'GeneralSubtree');
    const base = reader.next(undefined, 'base');
    reader.end(); // minimum is 0 and maximum absent in the PKIX profile
    const text = (): string => readString({ ...base, tag: Tag.IA5_STRING }, 'GeneralSubtree.base').toLowerCase();
    switch (base.tag) {
      case contextPrimitive(1):
        return { kind: 'email', value: text() };
      case contextPrimitive(2):
        return { kind: 'dns', value: text() };
      case contextConstructed(4):
        return { kind: 'directory', name: parseName(parseDer(base.value, Tag.SEQUENCE, 'Name').raw) };
      case contextPrimitive(6):
        return { kind: 'uri', value: text() };
      case contextPrimitive(7): {
        const half = base.value.length / 2;
        if (half !== 4 && half !== 16) throw new DerError('GeneralSubtree.iPAddress: neither 8 nor 32 octets');
        return { kind: 'ip', address: base.value.subarray(0, half), mask: base.value.subarray(half) };
      }
      default:
        throw new DerError('GeneralSubtree: a kind of name that is not understood');
    }
  });
}

/** Why the names lie outside of the constraints, or undefined. */
export function nameConstraintProblem(
  constraints: NameConstraints,
  subject: Name,
  names: readonly GeneralName[],
): string | undefined {
  for (const name of names) {
    if (!within(constraints, name.kind, (subtree) => matchesName(subtree, name)))
      return `${JSON.stringify(formatGeneralName(name))} lies outside of the CA's name constraints`;
  }
  if (subject.rdns.length > 0 && !within(constraints, 'directory', (subtree) => matchesSubject(subtree, subject)))
    return `the subject ${JSON.stringify(formatName(subject))} lies outside of the CA's name constraints`;
  return undefined;
}

function within(
  { permitted, excluded }: NameConstraints,
  kind: string,
  matches: (subtree: Subtree) => boolean,
): boolean {
  if (excluded.some(matches)) return false;
  const ofKind = permitted.filter((subtree) => subtree.kind === kind);
  return ofKind.length === 0 || ofKind.some(matches);
}

function matchesName(subtree: Subtree, name: GeneralName): boolean {
  switch (subtree.kind) {
    case 'dns':
      return name.kind === 'dns' && inDomain(name.value.toLowerCase(), subtree.value);
    case 'email':
      return name.kind === 'email' && matchesMailbox(name.value, subtree.value);
    case 'uri':
      return name.kind === 'uri' && matchesHost(name.value, subtree.value);
    case 'ip':
      return name.kind === 'ip' && matchesAddress(name.bytes, subtree.address, subtree.mask);
    case 'directory':
      return false;
  }
}

/** Labels added on the left of the constraint satisfy it, and so does the constraint itself. */
function inDomain(host: string, constraint: string): boolean {
  const base = constraint.replace(/^\./, '');
  return base === '' || host === base || host.endsWith(`.${base}`);
}

function matchesMailbox(mailbox: string, constraint: string): boolean {
  const at = mailbox.lastIndexOf('@');
  const host = mailbox.slice(at + 1).toLowerCase();
  if (constraint.includes('@')) {
    const split = constraint.lastIndexOf('@');
    return mailbox.slice(0, at).toLowerCase() === constraint.slice(0, split) && host === constraint.slice(split + 1);
  }
  return constraint.startsWith('.') ? host.endsWith(constraint) : host === constraint;
}

/** A URI without a host name lies in no subtree, so a permitted one refuses it and the CA errs on the safe side. */
function matchesHost(uri: string, constraint: string): boolean {
  const host = /^[^:]*:\/\/(?:[^/?#@]*@)?([^/?#:]+)/.exec(uri)?.[1]?.toLowerCase();
  if (host === undefined) return false;
  return constraint.startsWith('.') ? host.endsWith(constraint) : host === constraint;
}

function matchesAddress(address: Buffer, base: Buffer, mask: Buffer): boolean {
  return (
    address.length === base.length &&
    address.every((octet, i) => (octet & (mask[i] ?? 0)) === ((base[i] ?? 0) & (mask[i] ?? 0)))
  );
}

/** The subject begins with all RDNs of the base (RFC 5280 §7.1: text compared without case). */
function matchesSubject(subtree: Subtree, subject: Name): boolean {
  if (subtree.kind !== 'directory') return false;
  const { rdns } = subtree.name;
  return rdns.length <= subject.rdns.length && rdns.every((rdn, i) => sameRdn(rdn, subject.rdns[i] ?? []));
}

function sameRdn(a: readonly AttributeTypeAndValue[], b: readonly AttributeTypeAndValue[]): boolean {
  const comparable = ({ type, text }: AttributeTypeAndValue): string =>
    `${type}=${text.trim().replace(/ +/g, ' ').toLowerCase()}`;
  const left = a.map(comparable).sort();
  const right = b.map(comparable).sort();
  return left.length === right.length && left.every((value, i) => value === right[i]);
}
