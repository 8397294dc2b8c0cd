/**
 * What several sections share: checks of single values, each of which returns the reason why a value is invalid, or
 * undefined; and keys.
 */
import { isIP } from 'node:net';
import { parseDistinguishedName } from '../../pki/x509/name.ts';
import { attributeType } from '../../pki/x509/attribute-types.ts';
import { encodeNameConstraints, type PermittedNames } from '../../pki/x509/name-constraints.ts';
import { generalName, SAN_KINDS, type TextKind } from '../../pki/x509/general-name.ts';
import { otherNameKind } from '../../pki/x509/other-names.ts';
import { NamePattern, SanTemplate, SubjectTemplate } from '../../pki/x509/name-template.ts';
import { InputError } from '../../pki/input-error.ts';
import { requireDer } from '../../pki/der/element.ts';
import { optional } from '../keys.ts';
import { MAX_EXTENSION_LENGTH, reservedExtension } from '../../pki/x509/extensions.ts';

const DOTTED_OID = /^[012](\.(0|[1-9][0-9]*)){1,30}$/;

export function checkAttributeName(value: string): string | undefined {
  return attributeType(value) === undefined ? `"${value}" is not a known attribute type` : undefined;
}

export const ATTRIBUTE_ALLOWED = 'an attribute type such as CN, O, OU or serialNumber, or a dotted OID';

export function checkOid(value: string): string | undefined {
  return DOTTED_OID.test(value) ? undefined : `"${value}" is not a dotted OID`;
}

/** An extension that a profile may add to certificates. */
export function checkExtensionOid(value: string): string | undefined {
  return checkOid(value) ?? reservedExtension(value);
}

/** Hex of one DER value. */
export function checkExtensionValue(value: string): string | undefined {
  if (!/^([0-9a-fA-F]{2})+$/.test(value)) return 'the value is not hex';
  if (value.length > MAX_EXTENSION_LENGTH * 2) return `the value has more than ${MAX_EXTENSION_LENGTH} bytes`;
  return checkDerHex(value);
}

const checkDerHex = checkedBy(
  (value) => requireDer(Buffer.from(value, 'hex'), 'the value'),
  (_, problem) => `the value is not one DER value: ${problem}`,
);

export function checkPattern(value: string): string | undefined {
  try {
    new NamePattern(value);
    return undefined;
  } catch (error) {
    return error instanceof InputError ? error.message : `"${value}" is not a regular expression`;
  }
}

const hasProblem = (value: string, problem: string): string => `"${value}" has ${problem}`;
export const checkSubjectTemplate = checkedBy((value) => new SubjectTemplate(value), hasProblem);
/** A kind of subjectAltName that a profile can allow. */
export function checkSanKind(value: string): string | undefined {
  if (SAN_KINDS.some((kind) => kind === value)) return undefined;
  const [, oid] = /^other:(.*)$/.exec(value) ?? [];
  if (oid === undefined) return `"${value}" is not a kind of name`;
  const known = otherNameKind(oid);
  return known === undefined ? checkOid(oid) : `"${value}" is the kind "${known}"`;
}

/** A name of a kind, or one with placeholders. */
export const checkSanLiteral = (kind: TextKind): ((value: string) => string | undefined) =>
  checkedBy(
    (value) => {
      const isFixed = !new NamePattern(value, true).hasPlaceholder;
      if (isFixed) generalName(kind, value);
    },
    (value, problem) => `"${value}" ${problem}`,
  );
export const checkSanTemplate = checkedBy((value) => new SanTemplate(value, true), hasProblem);

/** A name of this kind that name constraints can permit. */
export const checkPermitted = (kind: keyof PermittedNames): ((value: string) => string | undefined) =>
  checkedBy((value) => encodeNameConstraints({ [kind]: [value] }));

function checkedBy(
  read: (value: string) => unknown,
  message = (_: string, problem: string): string => problem,
): (value: string) => string | undefined {
  return (value) => {
    try {
      read(value);
      return undefined;
    } catch (error) {
      if (error instanceof InputError) return message(value, error.message);
      throw error;
    }
  };
}

export function checkCidr(value: string): string | undefined {
  const [address, length, more] = value.split('/');
  const version = address?.includes('%') === true ? 0 : isIP(address ?? '');
  const bits = Number(length);
  if (version === 0 || more !== undefined || length === undefined || !/^[0-9]{1,3}$/.test(length))
    return `"${value}" is not an address block`;
  return bits > (version === 4 ? 32 : 128) ? `"${value}" has an impossible prefix length` : undefined;
}

export const HOST_ALLOWED = 'an IP address or a host name';

export function checkHost(value: string): string | undefined {
  if (isIP(value) !== 0) return undefined;
  return /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$/.test(value)
    ? undefined
    : `"${value}" is neither an IP address nor a host name`;
}

/** An absolute URL with one of the schemes, without credentials, query or fragment. */
export function urlCheck(...schemes: readonly string[]): (value: string) => string | undefined {
  return (value) => {
    if (!URL.canParse(value)) return `"${value}" is not a URL`;
    const url = new URL(value);
    if (!schemes.includes(url.protocol.slice(0, -1))) return `"${value}" is not an ${schemes.join(' or ')} URL`;
    if (url.username !== '' || url.password !== '') return 'the URL contains credentials';
    return url.search !== '' || url.hash !== '' ? `"${value}" contains a query or fragment` : undefined;
  };
}

/** RFC 4514; not empty, since an empty name identifies nobody. */
export const checkDistinguishedName = checkedBy((value) => {
  if (parseDistinguishedName(value).rdns.length === 0) throw new InputError('it is empty');
});

export function checkServerName(value: string): string | undefined {
  if (isIP(value) !== 0) return undefined;
  const problem =
    value.length > 253 || !/^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(value);
  return problem || /^[0-9.]+$/.test(value) ? `"${value}" is neither a DNS name nor an IP address` : undefined;
}

/** The CAs of a server that this one connects to. */
export const trustAnchors = (description: string, options: { readonly live?: boolean } = {}) =>
  optional.path({ description, defaultText: 'the CAs that Node.js knows', ...options });
