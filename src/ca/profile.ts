/** Policy: what of a request this CA's profile allows (400). What the certificate then looks like is the CA's matter. */
import { BlockList } from 'node:net';

import { badRequest, type EstuaryError } from '../errors.ts';
import { wholeMatch } from '../config/pattern.ts';
import type { ProfileConfig } from '../config/schema.ts';
import { DerError } from '../pki/der.ts';
import {
  parseBasicConstraints,
  parseExtKeyUsage,
  parseKeyUsage,
  type Extension,
  type KeyUsage,
} from '../pki/extensions.ts';
import { formatGeneralName, type GeneralName } from '../pki/general-name.ts';
import { attributeName, attributeType, type Name } from '../pki/name.ts';
import { OID, oidByName, oidName } from '../pki/oids.ts';
import { publicKeyProblem, type PublicKeyInfo } from '../pki/public-key.ts';

/** The parts of `[ca.profile]` that policy goes by. */
export type PolicyProfile = Pick<ProfileConfig, 'key_types' | 'key_usage' | 'extended_key_usage' | 'subject' | 'san'>;

/** What is asked for: the names the certificate would get, the key, and the requested extensions. */
export interface RequestedContent {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  readonly publicKey: PublicKeyInfo;
  readonly extensions: readonly Extension[];
}

/** A profile with its patterns compiled and its names resolved. */
interface CompiledProfile {
  readonly keyTypes: ReadonlySet<string>;
  readonly keyUsage: ReadonlySet<KeyUsage>;
  readonly purposes: ReadonlySet<string>;
  readonly requiredAttributes: readonly string[];
  readonly allowedAttributes: ReadonlySet<string> | undefined;
  readonly attributePatterns: ReadonlyMap<string, RegExp>;
  readonly san: PolicyProfile['san'];
  readonly sanPatterns: Readonly<Record<'dns' | 'email' | 'uri', readonly RegExp[] | undefined>>;
  readonly blocks: BlockList | undefined;
}

const compiledProfiles = new WeakMap<PolicyProfile, CompiledProfile>();

/**
 * Refuses what the profile does not allow. The profile alone decides keyUsage, extKeyUsage and everything else beside
 * names and key: a request may name some of the profile's usages and purposes, and gets the profile's.
 *
 * @throws EstuaryError 400 KEY_TYPE_NOT_ALLOWED, SUBJECT_NOT_ALLOWED, SUBJECT_MISSING, SAN_NOT_ALLOWED, SAN_MISSING,
 *   KEY_USAGE_NOT_ALLOWED, EXTENDED_KEY_USAGE_NOT_ALLOWED, CA_NOT_ALLOWED, EXTENSION_NOT_ALLOWED, EXTENSION_MALFORMED
 */
export function checkPolicy(profile: PolicyProfile, requested: RequestedContent): void {
  const compiled = compiledProfiles.get(profile) ?? compile(profile);
  compiledProfiles.set(profile, compiled);
  checkKeyType(compiled, requested.publicKey);
  checkSubject(compiled, requested.subject, requested.subjectAltNames);
  checkAltNames(compiled, requested.subjectAltNames);
  for (const extension of requested.extensions) checkExtension(compiled, extension);
}

function compile(profile: PolicyProfile): CompiledProfile {
  const { subject, san } = profile;
  return {
    keyTypes: new Set(profile.key_types),
    keyUsage: new Set(profile.key_usage),
    purposes: new Set(profile.extended_key_usage.map((name) => oidByName(name) ?? name)),
    requiredAttributes: subject.required.map(resolveAttribute),
    allowedAttributes: subject.allowed && new Set(subject.allowed.map(resolveAttribute)),
    attributePatterns: new Map(
      Object.entries(subject.patterns).map(([name, pattern]) => [resolveAttribute(name), wholeMatch(pattern)]),
    ),
    san,
    sanPatterns: { dns: san.dns?.map(wholeMatch), email: san.email?.map(wholeMatch), uri: san.uri?.map(wholeMatch) },
    blocks: san.ip && addressBlocks(san.ip),
  };
}

function resolveAttribute(name: string): string {
  const type = attributeType(name);
  if (type === undefined) throw new RangeError(`unknown attribute type "${name}"`);
  return type;
}

function addressBlocks(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [address = '', length = ''] = block.split('/');
    list.addSubnet(address, Number(length), family(address));
  }
  return list;
}

const family = (address: string): 'ipv4' | 'ipv6' => (address.includes(':') ? 'ipv6' : 'ipv4');

/** The client's text in an answer: one short line. */
const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

function checkKeyType({ keyTypes }: CompiledProfile, key: PublicKeyInfo): void {
  const problem = publicKeyProblem(key);
  const reason =
    problem?.reason ??
    (keyTypes.has(key.keyType) ? undefined : `is ${key.keyType}; ${[...keyTypes].join(', ')} allowed`);
  if (reason !== undefined) throw badRequest('KEY_TYPE_NOT_ALLOWED', `The public key ${reason}.`);
}

function checkSubject(profile: CompiledProfile, subject: Name, altNames: readonly GeneralName[]): void {
  const refuse = (reason: string): EstuaryError => badRequest('SUBJECT_NOT_ALLOWED', `The subject ${reason}.`);
  const attributes = subject.rdns.flat();
  for (const type of profile.requiredAttributes) {
    if (!attributes.some((attribute) => attribute.type === type)) throw refuse(`must have ${attributeName(type)}`);
  }
  if (attributes.length === 0 && altNames.length === 0)
    throw badRequest('SUBJECT_MISSING', 'The request names neither a subject nor a subjectAltName.');
  for (const { type, text } of attributes) {
    if (profile.allowedAttributes?.has(type) === false) throw refuse(`must not have ${attributeName(type)}`);
    if (profile.attributePatterns.get(type)?.test(text) === false)
      throw refuse(`has a ${attributeName(type)} that is not allowed: ${quote(text)}`);
  }
}

function checkAltNames(profile: CompiledProfile, names: readonly GeneralName[]): void {
  const { san } = profile;
  if (names.length > san.max)
    throw badRequest('SAN_NOT_ALLOWED', `The request has ${names.length} subjectAltNames; ${san.max} are allowed.`);
  for (const name of names) {
    const reason = altNameProblem(profile, name);
    if (reason !== undefined)
      throw badRequest('SAN_NOT_ALLOWED', `The subjectAltName ${quote(formatGeneralName(name))} ${reason}.`);
  }
  const missing = san.required.find((kind) => !names.some((name) => name.kind === kind));
  if (missing !== undefined)
    throw badRequest('SAN_MISSING', `The request needs a subjectAltName of the kind ${missing}.`);
}

function altNameProblem({ san, sanPatterns, blocks }: CompiledProfile, name: GeneralName): string | undefined {
  if (name.kind === 'other' || !san.allowed.includes(name.kind)) return 'is of a kind that is not allowed';
  if (name.kind === 'ip')
    return blocks?.check(name.value, family(name.value)) === false ? 'is not in an allowed address block' : undefined;
  if (name.kind === 'dns' && name.value.startsWith('*') && !san.wildcards)
    return 'has a wildcard, which is not allowed';
  const value = name.kind === 'dns' ? name.value.toLowerCase() : name.value;
  return sanPatterns[name.kind]?.some((pattern) => pattern.test(value)) === false ? 'is not allowed' : undefined;
}

function checkExtension(profile: CompiledProfile, { oid, critical, value }: Extension): void {
  switch (oid) {
    case OID.subjectAltName:
      return;
    case OID.basicConstraints:
      if (parsed(oid, value, parseBasicConstraints).ca)
        throw badRequest('CA_NOT_ALLOWED', 'The request asks for a CA certificate, which is not issued here.');
      return;
    case OID.keyUsage: {
      checkKeyUsage(profile, parsed(oid, value, parseKeyUsage));
      return;
    }
    case OID.extKeyUsage: {
      checkPurposes(profile, parsed(oid, value, parseExtKeyUsage));
      return;
    }
    default:
      if (critical)
        throw badRequest('EXTENSION_NOT_ALLOWED', `The request has the critical extension ${oidName(oid)}.`);
  }
}

function parsed<T>(oid: string, value: Buffer, parse: (value: Buffer) => T): T {
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw badRequest('EXTENSION_MALFORMED', `The requested ${oidName(oid)} is not valid DER: ${error.message}.`);
  }
}

/** A profile without keyUsage leaves the extension out, so every usage of an end entity is within it. */
function checkKeyUsage({ keyUsage }: CompiledProfile, usages: readonly KeyUsage[]): void {
  const beyond = usages.find((usage) =>
    keyUsage.size === 0 ? usage === 'keyCertSign' || usage === 'cRLSign' : !keyUsage.has(usage),
  );
  if (beyond !== undefined)
    throw badRequest(
      'KEY_USAGE_NOT_ALLOWED',
      `The request asks for the key usage ${beyond}, which is not issued here.`,
    );
}

function checkPurposes({ purposes }: CompiledProfile, requested: readonly string[]): void {
  const beyond = purposes.size === 0 ? undefined : requested.find((purpose) => !purposes.has(purpose));
  if (beyond !== undefined)
    throw badRequest(
      'EXTENDED_KEY_USAGE_NOT_ALLOWED',
      `The request asks for the extended key usage ${oidName(beyond)}, which is not issued here.`,
    );
}
