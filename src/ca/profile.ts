/** Policy: which requests this CA's profile allows (400). The CA decides the certificate's other content. */
import { badRequest, type EstuaryError } from '../errors.ts';
import type { ProfileConfig } from '../config/schema.ts';
import {
  type Extension,
  type KeyUsage,
  MAX_EXTENSION_LENGTH,
  parseBasicConstraints,
  parseExtKeyUsage,
  parseKeyUsage,
} from '../pki/x509/extensions.ts';
import {
  addressWithin,
  formatGeneralName,
  generalNameProblem,
  ipAddress,
  networkMask,
  sameGeneralNames,
  sanKind,
  type TextKind,
  underscoreProblem,
  type GeneralName,
} from '../pki/x509/general-name.ts';
import { NamePattern, type PlaceholderValues } from '../pki/x509/name-template.ts';
import type { AttributeTypeAndValue, Name } from '../pki/x509/name.ts';
import { attributeName, attributeType } from '../pki/x509/attribute-types.ts';
import { oidByName, OID, oidName } from '../pki/der/oids.ts';
import { publicKeyProblem, type PublicKeyInfo } from '../pki/x509/public-key.ts';
import { asAltName } from '../pki/x509/subject-names.ts';
import { InputError } from '../pki/input-error.ts';
import { CA_KEY_USAGE } from './local/key-usage.ts';
import { DerError } from '../pki/der/der.ts';
import { requireDer } from '../pki/der/element.ts';

/** The parts of `[ca.profile]` that policy uses. */
export type PolicyProfile = Pick<ProfileConfig, 'key_types' | 'key_usage' | 'extended_key_usage' | 'subject' | 'san'> &
  Partial<Pick<ProfileConfig, 'extensions' | 'certificate_authority'>>;

/** The names that the certificate would get, the key, and the requested extensions. */
export interface RequestedContent {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  /** Names that the profile itself added; they are exempt. */
  readonly added?: readonly GeneralName[];
  /** Values for placeholders in patterns; undefined for a queued request, whose names were checked before. */
  readonly values?: PlaceholderValues | undefined;
  /** undefined: the server generates a key of an allowed type. */
  readonly publicKey: PublicKeyInfo | undefined;
  readonly extensions: readonly Extension[];
}

interface CompiledProfile {
  readonly keyUsage: ReadonlySet<KeyUsage>;
  readonly purposes: ReadonlySet<string>;
  /** Extensions that are copied from the request. */
  readonly copied: ReadonlySet<string>;
  /** The CA issues CA certificates. */
  readonly forCas: boolean;
  readonly keyTypes: ReadonlySet<string>;
  readonly requiredAttributes: readonly string[];
  readonly allowedAttributes: ReadonlySet<string> | undefined;
  readonly attributePatterns: ReadonlyMap<string, NamePattern>;
  readonly san: PolicyProfile['san'];
  readonly sanPatterns: Readonly<Record<TextKind, readonly NamePattern[] | undefined>>;
  readonly blocks: readonly AddressBlock[] | undefined;
}

interface AddressBlock {
  readonly address: Buffer;
  readonly mask: Buffer;
}

const compiledProfiles = new WeakMap<PolicyProfile, CompiledProfile>();

/**
 * Rejects what the profile does not allow. The profile alone decides everything except names and key: a request may
 * name some of the profile's usages and purposes, but always gets all of them.
 * @throws EstuaryError 400 KEY_TYPE_NOT_ALLOWED, SUBJECT_NOT_ALLOWED, SUBJECT_MISSING, SAN_NOT_ALLOWED, SAN_MISSING,
 * KEY_USAGE_NOT_ALLOWED, EXTENDED_KEY_USAGE_NOT_ALLOWED, CA_NOT_ALLOWED, EXTENSION_NOT_ALLOWED, EXTENSION_MALFORMED
 */
export function checkPolicy(profile: PolicyProfile, requested: RequestedContent): void {
  const compiled = compiledProfile(profile);
  if (requested.publicKey !== undefined) checkKeyType(compiled, requested.publicKey);
  checkSubject(compiled, requested);
  checkAltNames(compiled, requested);
  checkNamesInSubject(compiled, requested);
  for (const extension of requested.extensions) checkRequestedExtension(compiled, extension);
}

/** The requested extensions that are copied into the certificate unchanged. */
export function copiedExtensions(profile: PolicyProfile, requested: readonly Extension[]): readonly Extension[] {
  const { copied } = compiledProfile(profile);
  return requested.filter(({ oid }) => copied.has(oid));
}

function compiledProfile(profile: PolicyProfile): CompiledProfile {
  const compiled = compiledProfiles.get(profile) ?? compile(profile);
  compiledProfiles.set(profile, compiled);
  return compiled;
}

/** Whether a pattern with a placeholder allows a name to a requester that is bound to a different name. */
export function allowedByPlaceholder(
  profile: PolicyProfile,
  asked: { readonly attribute: AttributeTypeAndValue } | { readonly name: GeneralName },
  values: PlaceholderValues,
): boolean {
  const { attributePatterns, sanPatterns } = compiledProfile(profile);
  if ('attribute' in asked) {
    const pattern = attributePatterns.get(asked.attribute.type);
    return pattern?.hasPlaceholder === true && pattern.matches(asked.attribute.text, values);
  }
  const { name } = asked;
  if (name.kind === 'other' || name.kind === 'ip') return false;
  const patterns = sanPatterns[name.kind]?.filter(({ hasPlaceholder }) => hasPlaceholder) ?? [];
  return patterns.some((pattern) => matchesName(pattern, name, values));
}

/** DNS and SRV names, and hex, are compared in lower case. */
function matchesName(
  pattern: NamePattern,
  { kind, value }: { readonly kind: TextKind; readonly value: string },
  values: PlaceholderValues | undefined,
): boolean {
  const lower = FOLDED.has(kind);
  return matches(pattern, lower ? value.toLowerCase() : value, values, lower);
}

const FOLDED: ReadonlySet<TextKind> = new Set(['dns', 'srv', 'hardware_module', 'other_name']);

function matches(
  pattern: NamePattern,
  value: string,
  values: PlaceholderValues | undefined,
  lowerCase = false,
): boolean {
  return values === undefined && pattern.hasPlaceholder ? true : pattern.matches(value, values ?? NO_VALUES, lowerCase);
}

const NO_VALUES: PlaceholderValues = () => [];

function compile(profile: PolicyProfile): CompiledProfile {
  const { subject, san } = profile;
  const forCas = profile.certificate_authority !== undefined;
  return {
    keyTypes: new Set(profile.key_types),
    forCas,
    keyUsage: new Set(forCas ? CA_KEY_USAGE : profile.key_usage),
    purposes: new Set(forCas ? [] : profile.extended_key_usage.map((name) => oidByName(name) ?? name)),
    copied: new Set(profile.extensions?.flatMap(({ oid, from }) => (from === 'csr' ? [oid] : []))),
    requiredAttributes: subject.required.map(resolveAttribute),
    allowedAttributes: subject.allowed && new Set(subject.allowed.map(resolveAttribute)),
    attributePatterns: new Map(
      Object.entries(subject.patterns).map(([name, pattern]) => [resolveAttribute(name), new NamePattern(pattern)]),
    ),
    san,
    sanPatterns: {
      ...{ dns: patternsOf(san.dns), email: patternsOf(san.email), uri: patternsOf(san.uri), upn: patternsOf(san.upn) },
      srv: patternsOf(lowerCase(san.srv), true),
      hardware_module: patternsOf(lowerCase(san.hardware_module), true),
      permanent_identifier: patternsOf(san.permanent_identifier, true),
      registered_id: patternsOf(san.registered_id, true),
      other_name: patternsOf(lowerCase(san.other), true),
    },
    blocks: san.ip?.map(addressBlock),
  };
}

function patternsOf(texts: readonly string[] | undefined, isLiteral = false): readonly NamePattern[] | undefined {
  return texts?.map((text) => new NamePattern(text, isLiteral));
}

/** Literal values outside of placeholders, whose names have letters in both cases. */
const lowerCase = (texts: readonly string[] | undefined): readonly string[] | undefined =>
  texts?.map((text) => text.replace(/[^{}]+(?![^{]*\})/g, (literal) => literal.toLowerCase()));

function resolveAttribute(name: string): string {
  const type = attributeType(name);
  if (type === undefined) throw new InputError(`unknown attribute type "${name}"`);
  return type;
}

/** An address of the other family has another length and matches no block; an IPv4-mapped IPv6 address is IPv6. */
function addressBlock(block: string): AddressBlock {
  const [text = '', length] = block.split('/');
  const { bytes: address } = ipAddress(text);
  return { address, mask: networkMask(address.length, Number(length)) };
}

/** Client text for a message, truncated. */
const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

function checkKeyType({ keyTypes }: CompiledProfile, key: PublicKeyInfo): void {
  const problem = publicKeyProblem(key);
  const reason =
    problem?.reason ??
    (keyTypes.has(key.keyType) ? undefined : `is ${key.keyType}; ${[...keyTypes].join(', ')} allowed`);
  if (reason !== undefined) throw badRequest('KEY_TYPE_NOT_ALLOWED', `The public key ${reason}.`);
}

function checkSubject(
  profile: CompiledProfile,
  { subject, subjectAltNames: altNames, values }: RequestedContent,
): void {
  const refuse = (reason: string): EstuaryError => badRequest('SUBJECT_NOT_ALLOWED', `The subject ${reason}.`);
  const attributes = subject.rdns.flat();
  for (const type of profile.requiredAttributes) {
    if (!attributes.some((attribute) => attribute.type === type)) throw refuse(`must have ${attributeName(type)}`);
  }
  if (attributes.length === 0 && altNames.length === 0)
    throw badRequest('SUBJECT_MISSING', 'The request names neither a subject nor a subjectAltName.');
  for (const { type, text } of attributes) {
    if (profile.allowedAttributes?.has(type) === false) throw refuse(`must not have ${attributeName(type)}`);
    const pattern = profile.attributePatterns.get(type);
    if (pattern !== undefined && !matches(pattern, text, values))
      throw refuse(`has a ${attributeName(type)} that is not allowed: ${quote(text)}`);
  }
}

/** A name that the SAN policy rejects must not be in the subject either (docs/guides/names.md). */
function checkNamesInSubject(profile: CompiledProfile, { subject, added = [], values }: RequestedContent): void {
  for (const attribute of subject.rdns.flat()) {
    const name = asAltName(attribute);
    if (name === undefined || isAmong(name, added)) continue;
    const reason = altNameProblem(profile, name, values) ?? formProblem(name);
    if (reason !== undefined)
      throw badRequest(
        'SAN_NOT_ALLOWED',
        `The ${attributeName(attribute.type)} ${quote(attribute.text)} of the subject, as a subjectAltName, ${reason}.`,
      );
  }
}

/** As for a dNSName, but allows letters of other scripts and underscores. */
const formProblem = (name: GeneralName): string | undefined =>
  name.kind === 'dns'
    ? generalNameProblem({ ...name, value: name.value.replace(/[^\-.*0-9A-Za-z]/gu, 'x') })
    : undefined;

const isAmong = (name: GeneralName, names: readonly GeneralName[]): boolean =>
  names.some((other) => sameGeneralNames([other], [name]));

function checkAltNames(
  profile: CompiledProfile,
  { subjectAltNames: names, added = [], values }: RequestedContent,
): void {
  const { san } = profile;
  if (names.length > san.max)
    throw badRequest('SAN_NOT_ALLOWED', `The request has ${names.length} subjectAltNames; ${san.max} are allowed.`);
  for (const name of names) {
    const reason =
      (isAmong(name, added) ? undefined : altNameProblem(profile, name, values)) ??
      (san.dns_underscore === true ? undefined : underscoreProblem(name));
    if (reason !== undefined)
      throw badRequest('SAN_NOT_ALLOWED', `The subjectAltName ${quote(formatGeneralName(name))} ${reason}.`);
  }
  const missing = san.required.find((kind) => !names.some((name) => sanKind(name) === kind));
  if (missing !== undefined)
    throw badRequest('SAN_MISSING', `The request needs a subjectAltName of the kind ${missing}.`);
}

function altNameProblem(
  { san, sanPatterns, blocks }: CompiledProfile,
  name: GeneralName,
  values: PlaceholderValues | undefined,
): string | undefined {
  const kindName = sanKind(name);
  if (name.kind === 'other' || kindName === undefined) return 'is of a kind that Estuary does not issue';
  if (!san.allowed.includes(kindName))
    return `is of the kind ${kindName}, which ca.profile.san.allowed does not contain`;
  if (name.kind === 'ip')
    return blocks?.some(({ address, mask }) => addressWithin(name.bytes, address, mask)) === false
      ? 'is not in an allowed address block'
      : undefined;
  if (name.kind === 'dns' && name.value.includes('*') && !san.wildcards) return 'has a wildcard, which is not allowed';
  const { kind, value } = name;
  return sanPatterns[kind]?.some((pattern) => matchesName(pattern, { kind, value }, values)) === false
    ? 'is not allowed'
    : undefined;
}

/** A request may name some of the usages and purposes, but always gets all of them. */
function checkRequestedExtension(policy: CompiledProfile, { oid, critical, value }: Extension): void {
  switch (oid) {
    case OID.subjectAltName:
      return;
    case OID.basicConstraints:
      if (parsed(oid, value, parseBasicConstraints).ca && !policy.forCas)
        throw badRequest('CA_NOT_ALLOWED', 'The request asks for a CA certificate, which this CA does not issue.');
      return;
    case OID.keyUsage: {
      checkKeyUsage(policy, parsed(oid, value, parseKeyUsage));
      return;
    }
    case OID.extKeyUsage: {
      checkPurposes(policy, parsed(oid, value, parseExtKeyUsage));
      return;
    }
    default:
      // A device CA gets the profile's constraints.
      if (oid === OID.nameConstraints && policy.forCas) return;
      if (policy.copied.has(oid)) checkCopied(oid, value);
      else if (critical)
        throw badRequest(
          'EXTENSION_NOT_ALLOWED',
          `The request has the critical extension ${oidName(oid)}, which this CA does not issue.`,
        );
  }
}

/** Copied extensions are opaque; only DER is checked. */
function checkCopied(oid: string, value: Buffer): void {
  if (value.length > MAX_EXTENSION_LENGTH)
    throw badRequest(
      'EXTENSION_NOT_ALLOWED',
      `The requested ${oidName(oid)} has ${value.length} bytes; ${MAX_EXTENSION_LENGTH} are allowed.`,
    );
  parsed(oid, value, requireDer);
}

function parsed<T>(oid: string, value: Buffer, parse: (value: Buffer) => T): T {
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw badRequest('EXTENSION_MALFORMED', `The requested ${oidName(oid)} is not valid DER: ${error.message}.`);
  }
}

/** Without keyUsage in the profile the extension is omitted, which allows every end-entity usage. */
function checkKeyUsage({ keyUsage }: CompiledProfile, usages: readonly KeyUsage[]): void {
  const beyond = usages.find((usage) =>
    keyUsage.size === 0 ? usage === 'keyCertSign' || usage === 'cRLSign' : !keyUsage.has(usage),
  );
  if (beyond !== undefined)
    throw badRequest(
      'KEY_USAGE_NOT_ALLOWED',
      `The request asks for the key usage ${beyond}, which this CA does not issue.`,
    );
}

function checkPurposes({ purposes }: CompiledProfile, requested: readonly string[]): void {
  const beyond = purposes.size === 0 ? undefined : requested.find((purpose) => !purposes.has(purpose));
  if (beyond !== undefined)
    throw badRequest(
      'EXTENDED_KEY_USAGE_NOT_ALLOWED',
      `The request asks for the extended key usage ${oidName(beyond)}, which this CA does not issue.`,
    );
}
