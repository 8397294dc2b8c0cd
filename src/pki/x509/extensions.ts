/** X.509 extensions (RFC 5280 §4.2): the list, and those that Estuary writes or reads. */
import {
  bitString,
  boolean,
  children,
  contextConstructed,
  contextPrimitive,
  type DerElement,
  DerError,
  DerReader,
  explicit,
  implicitPrimitive,
  integer,
  octetString,
  oid,
  parseDer,
  readFields,
  readOid,
  sequence,
  Tag,
  tlv,
  ia5String,
  readString,
} from '../der/der.ts';
import { firstRepeated, OID, oidName } from '../der/oids.ts';
import { encodeGeneralName, encodeGeneralNames, parseGeneralName } from './general-name.ts';

export interface Extension {
  readonly oid: string;
  readonly critical: boolean;
  /** Content of the OCTET STRING: DER of the extension's type. */
  readonly value: Buffer;
}

/**
 * The elements of an Extensions SEQUENCE, in order. Tolerates `critical FALSE`, which is not DER but common; extensions
 * are re-encoded, never copied bytewise. The caller checks for {@link duplicateExtension}.
 * @throws DerError
 */
export function parseExtensions(der: Buffer): Extension[] {
  return children(parseDer(der, Tag.SEQUENCE, 'Extensions').value, 'Extension').map((element) => {
    return readFields(element, 'Extension', (fields) => ({
      oid: fields.oid('extnID'),
      critical: fields.flag(Tag.BOOLEAN, 'critical'),
      value: fields.octets('extnValue'),
    }));
  });
}

/** The first OID that occurs twice, if any (RFC 5280 §4.2 forbids it). */
export function duplicateExtension(extensions: readonly Extension[]): string | undefined {
  return firstRepeated(extensions.map(({ oid: type }) => type));
}

export function findExtension(extensions: readonly Extension[], dotted: string): Extension | undefined {
  return extensions.find((extension) => extension.oid === dotted);
}

const TRUE = boolean(true);

export function encodeExtension({ oid: dotted, critical, value }: Extension): Buffer {
  return critical ? sequence(oid(dotted), TRUE, octetString(value)) : sequence(oid(dotted), octetString(value));
}

export function encodeExtensions(extensions: readonly Extension[]): Buffer {
  return sequence(...extensions.map(encodeExtension));
}

// --- basicConstraints ------------------------------------------------------------------------------------------

export interface BasicConstraints {
  readonly ca: boolean;
  readonly pathLength: number | undefined;
}

export function parseBasicConstraints(value: Buffer): BasicConstraints {
  return readFields(parseDer(value, undefined, 'BasicConstraints'), 'BasicConstraints', (fields) => {
    const ca = fields.flag(Tag.BOOLEAN, 'cA');
    const pathLength = fields.nextTag === Tag.INTEGER ? fields.integer('pathLenConstraint') : undefined;
    if (pathLength !== undefined && pathLength < 0) throw new DerError('BasicConstraints.pathLenConstraint: negative');
    return { ca, pathLength };
  });
}

export function encodeBasicConstraints({ ca, pathLength }: BasicConstraints): Buffer {
  if (!ca) return sequence();
  return pathLength === undefined ? sequence(TRUE) : sequence(TRUE, integer(pathLength));
}

// --- keyUsage --------------------------------------------------------------------------------------------------

/** RFC 5280 §4.2.1.3, in bit order. */
export const KEY_USAGES = [
  'digitalSignature',
  'nonRepudiation',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'keyCertSign',
  'cRLSign',
  'encipherOnly',
  'decipherOnly',
] as const;

export type KeyUsage = (typeof KEY_USAGES)[number];

/** @throws DerError, also for an empty usage */
export function parseKeyUsage(value: Buffer): KeyUsage[] {
  // Unused bits may be set in what others write: only the named ones count.
  const bytes = parseDer(value, Tag.BIT_STRING, 'KeyUsage').value.subarray(1);
  const usages = KEY_USAGES.filter((_, bit) => ((bytes[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0);
  if (usages.length === 0) throw new DerError('KeyUsage: no bit set');
  return usages;
}

/** DER named bit list, without trailing zero bits (X.690 §11.2.2). */
export function encodeKeyUsage(usages: readonly KeyUsage[]): Buffer {
  const bits = usages.map((usage) => KEY_USAGES.indexOf(usage));
  const last = Math.max(...bits, 0);
  const bytes = Buffer.alloc((last >> 3) + 1);
  for (const bit of bits) bytes.writeUInt8(bytes.readUInt8(bit >> 3) | (0x80 >> (bit & 7)), bit >> 3);
  return bitString(bytes, 7 - (last & 7));
}

// --- extKeyUsage -----------------------------------------------------------------------------------------------

/** Dotted OIDs. @throws DerError */
export function parseExtKeyUsage(value: Buffer): string[] {
  const purposes = children(parseDer(value, Tag.SEQUENCE, 'ExtKeyUsageSyntax').value, 'KeyPurposeId');
  if (purposes.length === 0) throw new DerError('ExtKeyUsageSyntax: empty');
  return purposes.map((purpose) => readOid(purpose, 'KeyPurposeId'));
}

export function encodeExtKeyUsage(purposes: readonly string[]): Buffer {
  return sequence(...purposes.map(oid));
}

// --- key identifiers -------------------------------------------------------------------------------------------

export function parseSubjectKeyIdentifier(value: Buffer): Buffer {
  return parseDer(value, Tag.OCTET_STRING, 'SubjectKeyIdentifier').value;
}

export const encodeSubjectKeyIdentifier = octetString;

/** The keyIdentifier of an AuthorityKeyIdentifier. */
export function parseAuthorityKeyIdentifier(value: Buffer): Buffer | undefined {
  const reader = DerReader.of(value, 'AuthorityKeyIdentifier');
  const keyIdentifier = reader.optional(contextPrimitive(0), 'keyIdentifier')?.value;
  reader.optional(contextConstructed(1), 'authorityCertIssuer');
  reader.optional(contextPrimitive(2), 'authorityCertSerialNumber');
  reader.end();
  return keyIdentifier;
}

/** The keyIdentifier form, as RFC 5280 §4.2.1.1 requires. */
export function encodeAuthorityKeyIdentifier(keyIdentifier: Buffer): Buffer {
  return sequence(implicitPrimitive(0, keyIdentifier));
}

// --- where to look ---------------------------------------------------------------------------------------------

export const encodeSubjectAltName = encodeGeneralNames;

/** One distribution point whose fullName contains these URLs (RFC 5280 §4.2.1.13). */
export function encodeCrlDistributionPoints(urls: readonly string[]): Buffer {
  const names = urls.map((value) => encodeGeneralName({ kind: 'uri', value }));
  return sequence(sequence(explicit(0, tlv(contextConstructed(0), ...names))));
}

/** The URIs of all fullNames. @throws DerError */
export const parseCrlDistributionPoints = (value: Buffer): string[] =>
  parseDistributionPointNames(value)
    .map(parseGeneralName)
    .flatMap((name) => (name.kind === 'uri' ? [name.value] : []));

/** The GeneralNames of all fullNames in cRLDistributionPoints. @throws DerError */
export function parseDistributionPointNames(value: Buffer): DerElement[] {
  const points = children(parseDer(value, Tag.SEQUENCE, 'CRLDistributionPoints').value, 'DistributionPoint');
  return points.flatMap((point) => {
    if (point.tag !== Tag.SEQUENCE) throw new DerError('DistributionPoint: unexpected tag');
    const name = new DerReader(point.value, 'DistributionPoint').optional(contextConstructed(0), 'distributionPoint');
    return (name && fullNames(name.value)) ?? [];
  });
}

/** The GeneralNames in a DistributionPointName; undefined for the rare nameRelativeToCRLIssuer. @throws DerError */
export function fullNames(choice: Buffer): DerElement[] | undefined {
  const name = parseDer(choice, undefined, 'DistributionPointName');
  return name.tag === contextConstructed(0) ? children(name.value, 'GeneralName') : undefined;
}

export interface AuthorityInfoAccess {
  readonly ocsp: readonly string[];
  readonly caIssuers: readonly string[];
}

/** RFC 5280 §4.2.2.1. */
export function encodeAuthorityInfoAccess({ ocsp, caIssuers }: AuthorityInfoAccess): Buffer {
  const describe = (method: string) => (value: string) =>
    sequence(oid(method), encodeGeneralName({ kind: 'uri', value }));
  return sequence(...ocsp.map(describe(OID.ocsp)), ...caIssuers.map(describe(OID.caIssuers)));
}

/** The URIs of the two access methods; ignores others. @throws DerError */
export function parseAuthorityInfoAccess(value: Buffer): AuthorityInfoAccess {
  const ocsp: string[] = [];
  const caIssuers: string[] = [];
  for (const element of children(parseDer(value, Tag.SEQUENCE, 'AuthorityInfoAccess').value, 'AccessDescription')) {
    const [method, location] = readFields(element, 'AccessDescription', (fields) => [
      fields.oid('accessMethod'),
      parseGeneralName(fields.next(undefined, 'accessLocation')),
    ]);
    if (location.kind !== 'uri') continue;
    if (method === OID.ocsp) ocsp.push(location.value);
    if (method === OID.caIssuers) caIssuers.push(location.value);
  }
  return { ocsp, caIssuers };
}

// --- what a profile may not set ----------------------------------------------------------------------------------

const forCas = 'is only for CA certificates';
const forLists = 'is only for CRLs';
const ownKey = (key: string): string => `is set by Estuary (${key})`;

/** Extensions that no profile may set or copy: they make a CA certificate, or Estuary sets them. */
const RESERVED: ReadonlyMap<string, string> = new Map<string, string>([
  [OID.basicConstraints, ownKey('never a CA')],
  [OID.nameConstraints, forCas],
  [OID.policyConstraints, forCas],
  [OID.policyMappings, forCas],
  [OID.inhibitAnyPolicy, forCas],
  [OID.netscapeCertType, 'may make a certificate a CA'],
  [OID.microsoftCaVersion, forCas],
  [OID.proxyCertInfo, 'lets a certificate issue other certificates (RFC 3820)'],
  [OID.precertificatePoison, 'makes the certificate invalid (RFC 6962)'],
  [OID.keyUsage, ownKey('key_usage')],
  [OID.extKeyUsage, ownKey('extended_key_usage')],
  [OID.microsoftApplicationPolicies, 'replaces extKeyUsage (extended_key_usage)'],
  [OID.subjectAltName, ownKey('san')],
  [OID.issuerAltName, 'is a name of the CA, which comes from its certificate'],
  [OID.certificatePolicies, ownKey('policies')],
  [OID.subjectKeyIdentifier, ownKey('from the key')],
  [OID.authorityKeyIdentifier, ownKey("from the CA's key")],
  [OID.cRLDistributionPoints, ownKey('publication')],
  [OID.freshestCRL, 'is an address of revocation data, which Estuary sets (publication)'],
  [OID.authorityInfoAccess, ownKey('publication')],
  [OID.ocspNoCheck, 'exempts a certificate from revocation'],
  [OID.cRLNumber, forLists],
  [OID.cRLReason, forLists],
  [OID.invalidityDate, forLists],
  [OID.deltaCRLIndicator, forLists],
  [OID.issuingDistributionPoint, forLists],
  [OID.certificateIssuer, forLists],
]);

/** Maximum octets of one extension's value. */
export const MAX_EXTENSION_LENGTH = 4096;

/** Why a profile may not set or copy the extension, as a clause that names it; undefined if it may. */
export function reservedExtension(dotted: string): string | undefined {
  const reason = RESERVED.get(dotted);
  return reason === undefined ? undefined : `${oidName(dotted)} ${reason}`;
}

// --- certificatePolicies ---------------------------------------------------------------------------------------

/** PolicyInformation (RFC 5280 §4.2.1.4) with the CPS URI as the only qualifier. */
export interface CertificatePolicy {
  readonly oid: string;
  /** URI of the certification practice statement. */
  readonly cps?: string | undefined;
}

/** @param policies at least one; `cps` is ASCII */
export function encodeCertificatePolicies(policies: readonly CertificatePolicy[]): Buffer {
  return sequence(
    ...policies.map(({ oid: dotted, cps }) =>
      cps === undefined
        ? sequence(oid(dotted))
        : sequence(oid(dotted), sequence(sequence(oid(OID.cpsQualifier), ia5String(cps)))),
    ),
  );
}

/** Ignores qualifiers other than the CPS. @throws DerError */
export function parseCertificatePolicies(value: Buffer): CertificatePolicy[] {
  const policies = children(parseDer(value, Tag.SEQUENCE, 'CertificatePolicies').value, 'PolicyInformation');
  if (policies.length === 0) throw new DerError('CertificatePolicies: empty');
  return policies.map((policy) =>
    readFields(policy, 'PolicyInformation', (fields) => {
      const identifier = fields.oid('policyIdentifier');
      const qualifiers = fields.optional(Tag.SEQUENCE, 'policyQualifiers');
      const cps = qualifiers && children(qualifiers.value, 'PolicyQualifierInfo').map(readCps).find(Boolean);
      return { oid: identifier, cps };
    }),
  );
}

/** The purposes in Microsoft's application policies, which have the form of certificatePolicies. @throws DerError */
export const applicationPolicies = (value: Buffer): string[] =>
  parseCertificatePolicies(value).map(({ oid: dotted }) => dotted);

function readCps(element: DerElement): string | undefined {
  return readFields(element, 'PolicyQualifierInfo', (fields) => {
    const isCps = fields.oid('policyQualifierId') === OID.cpsQualifier;
    const qualifier = fields.next(undefined, 'qualifier');
    return isCps && qualifier.tag === Tag.IA5_STRING ? readString(qualifier, 'cPSuri') : undefined;
  });
}
