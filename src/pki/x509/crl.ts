/**
 * Certificate revocation lists (RFC 5280 §5): parsing and building. Entries are read lazily: a list may hold 100,000.
 */
import {
  contextConstructed,
  contextPrimitive,
  DerError,
  DerReader,
  explicit,
  generalizedTime,
  integer,
  integerBytes,
  readElement,
  readInteger,
  readTime,
  sequence,
  Tag,
  time,
  tlv,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { serialHex } from './certificate.ts';
import {
  duplicateExtension,
  encodeAuthorityKeyIdentifier,
  encodeExtension,
  encodeExtensions,
  type Extension,
  findExtension,
  fullNames,
  parseDistributionPointNames,
  parseExtensions,
} from './extensions.ts';
import { type Name, parseName } from './name.ts';
import type { PublicKeyInfo } from './public-key.ts';
import { parseSignatureAlgorithm, sameAlgorithm, verifySignature } from './signature-algorithms.ts';
import { readSigned } from './signed.ts';

export interface CertificateList {
  readonly der: Buffer;
  /** DER TBSCertList, which the signature covers. */
  readonly tbs: Buffer;
  readonly issuer: Name;
  readonly thisUpdate: Date;
  /** undefined if absent, which RFC 5280 §5.1.2.5 forbids. */
  readonly nextUpdate: Date | undefined;
  readonly extensions: readonly Extension[];
  /** Content of revokedCertificates, empty if absent; read it with {@link revokedEntries}. */
  readonly revoked: Buffer;
  readonly signatureAlgorithm: Buffer;
  readonly signature: Buffer;
}

interface RevokedEntry {
  readonly serialNumber: string;
  readonly extensions: readonly Extension[];
}

export function parseCertificateList(der: Buffer): CertificateList {
  const names = { whole: 'CertificateList', content: 'tbsCertList', signature: 'signatureValue' };
  const { content, algorithm: signatureAlgorithm, signature } = readSigned(der, names);
  const tbs = content.raw;
  const reader = DerReader.of(tbs, 'TBSCertList');
  const version = reader.optional(Tag.INTEGER, 'version');
  if (version !== undefined && readInteger(version, 'TBSCertList.version') !== 1)
    throw new DerError('TBSCertList.version: unknown');
  if (!sameAlgorithm(reader.sequence('signature'), signatureAlgorithm))
    throw new DerError('CertificateList: the signature algorithms inside and outside differ');
  const issuer = parseName(reader.sequence('issuer'));
  const thisUpdate = readTime(reader.next(undefined, 'thisUpdate'), 'thisUpdate');
  const next = reader.optional(Tag.UTC_TIME) ?? reader.optional(Tag.GENERALIZED_TIME);
  const revoked = reader.optional(Tag.SEQUENCE, 'revokedCertificates')?.value ?? Buffer.alloc(0);
  const list = reader.optional(contextConstructed(0), 'crlExtensions');
  reader.end();
  const extensions = list === undefined ? [] : parseExtensions(list.value);
  const twice = duplicateExtension(extensions);
  if (twice !== undefined) throw new DerError(`CertificateList: extension ${twice} more than once`);
  return {
    der,
    tbs,
    issuer,
    thisUpdate,
    nextUpdate: next && readTime(next, 'nextUpdate'),
    extensions,
    revoked,
    signatureAlgorithm,
    signature,
  };
}

/** Reads the entries one by one. @throws DerError for a malformed entry */
export function* revokedEntries(list: CertificateList): Generator<RevokedEntry> {
  for (let offset = 0; offset < list.revoked.length;) {
    const element = readElement(list.revoked, offset, list.revoked.length, 'revokedCertificate');
    if (element.tag !== Tag.SEQUENCE) throw new DerError('revokedCertificate: unexpected tag');
    offset += element.raw.length;
    const reader = new DerReader(element.value, 'revokedCertificate');
    const serial = integerBytes(reader.next(Tag.INTEGER, 'userCertificate'), 'userCertificate');
    readTime(reader.next(undefined, 'revocationDate'), 'revocationDate');
    const extensions = reader.optional(Tag.SEQUENCE, 'crlEntryExtensions');
    reader.end();
    yield {
      serialNumber: serialHex(serial),
      extensions: extensions === undefined ? [] : parseExtensions(extensions.raw),
    };
  }
}

/** Counts the entries without parsing them. @throws DerError for a truncated entry */
export function revokedCount({ revoked }: Pick<CertificateList, 'revoked'>): number {
  let count = 0;
  for (let offset = 0; offset < revoked.length; count++)
    offset += readElement(revoked, offset, revoked.length, 'revokedCertificate').raw.length;
  return count;
}

/** Whether the key signed the list. @throws DerError for an unsupported signature algorithm */
export async function isListSignedBy(list: CertificateList, issuerKey: PublicKeyInfo): Promise<boolean> {
  return verifySignature(parseSignatureAlgorithm(list.signatureAlgorithm), issuerKey, list.tbs, list.signature);
}

// --- issuingDistributionPoint ----------------------------------------------------------------------------------

/** RFC 5280 §5.2.5: the scope of a CRL. */
export interface IssuingDistributionPoint {
  /** DER of each GeneralName of fullName; undefined if the list is not limited to a distribution point. */
  readonly fullName: readonly Buffer[] | undefined;
  readonly onlyContainsUserCerts: boolean;
  readonly onlyContainsCACerts: boolean;
  readonly onlySomeReasons: boolean;
  readonly indirectCRL: boolean;
  readonly onlyContainsAttributeCerts: boolean;
}

/** @throws DerError, also for the rare nameRelativeToCRLIssuer */
export function parseIssuingDistributionPoint(value: Buffer): IssuingDistributionPoint {
  const reader = DerReader.of(value, 'IssuingDistributionPoint');
  const point = reader.optional(contextConstructed(0), 'distributionPoint');
  const names = point && fullNames(point.value);
  if (point !== undefined && names === undefined) throw new DerError('DistributionPointName: not a fullName');
  const scope = {
    fullName: names?.map(({ raw }) => raw),
    onlyContainsUserCerts: reader.flag(contextPrimitive(1), 'onlyContainsUserCerts'),
    onlyContainsCACerts: reader.flag(contextPrimitive(2), 'onlyContainsCACerts'),
    onlySomeReasons: reader.optional(contextPrimitive(3)) !== undefined,
    indirectCRL: reader.flag(contextPrimitive(4), 'indirectCRL'),
    onlyContainsAttributeCerts: reader.flag(contextPrimitive(5), 'onlyContainsAttributeCerts'),
  };
  reader.end();
  return scope;
}

/** DER of each fullName GeneralName in cRLDistributionPoints. @throws DerError */
export function distributionPointNames(extensions: readonly Extension[]): Buffer[] {
  const extension = findExtension(extensions, OID.cRLDistributionPoints);
  return extension === undefined ? [] : parseDistributionPointNames(extension.value).map(({ raw }) => raw);
}

/** An entry of a v2 CRL to be signed (RFC 5280 §5.3). */
interface CrlEntry {
  readonly serialNumber: string;
  readonly revocationDate: Date;
  readonly reason: CrlReason;
  readonly invalidityDate: Date | undefined;
}

interface CrlInput {
  /** DER AlgorithmIdentifier of the future signature. */
  readonly signatureAlgorithm: Buffer;
  readonly issuer: Buffer;
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
  readonly authorityKeyIdentifier: Buffer;
  /** Higher than in all earlier lists (RFC 5280 §5.2.3). */
  readonly number: number;
  /** Concatenated DER from {@link encodeCrlEntry}; each buffer holds any number of entries. */
  readonly entries: readonly Buffer[];
}

export const encodeCrlReason = (reason: CrlReason): Buffer => tlv(Tag.ENUMERATED, Uint8Array.of(CRL_REASONS[reason]));

/** DER of one entry of revokedCertificates. Omits the reason `unspecified`, as RFC 5280 §5.3.1 recommends. */
export function encodeCrlEntry({ serialNumber, revocationDate, reason, invalidityDate }: CrlEntry): Buffer {
  const extensions: Extension[] = [];
  if (reason !== 'unspecified')
    extensions.push({ oid: OID.cRLReason, critical: false, value: encodeCrlReason(reason) });
  if (invalidityDate !== undefined)
    extensions.push({ oid: OID.invalidityDate, critical: false, value: generalizedTime(invalidityDate) });
  const serial = integer(Buffer.from(serialNumber, 'hex'));
  return extensions.length === 0
    ? sequence(serial, time(revocationDate))
    : sequence(serial, time(revocationDate), encodeExtensions(extensions));
}

/** DER TBSCertList. revokedCertificates is absent without entries (RFC 5280 §5.1.2.6). */
export function buildTbsCertList(input: CrlInput): Buffer {
  const extensions = sequence(
    encodeExtension({
      oid: OID.authorityKeyIdentifier,
      critical: false,
      value: encodeAuthorityKeyIdentifier(input.authorityKeyIdentifier),
    }),
    encodeExtension({ oid: OID.cRLNumber, critical: false, value: integer(input.number) }),
  );
  return sequence(
    integer(1),
    input.signatureAlgorithm,
    input.issuer,
    time(input.thisUpdate),
    time(input.nextUpdate),
    ...(input.entries.some(({ length }) => length > 0) ? [sequence(...input.entries)] : []),
    explicit(0, extensions),
  );
}

/** Revocation reasons (RFC 5280 §5.3.1). */

/** CRLReason names and numbers; 7 is unused. */
export const CRL_REASONS = {
  unspecified: 0,
  keyCompromise: 1,
  cACompromise: 2,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
  certificateHold: 6,
  removeFromCRL: 8,
  privilegeWithdrawn: 9,
  aACompromise: 10,
} as const;

export type CrlReason = keyof typeof CRL_REASONS;

export function isCrlReason(name: string): name is CrlReason {
  return Object.hasOwn(CRL_REASONS, name);
}

/** Reasons that a revocation can have. removeFromCRL belongs to delta CRLs and undoes a revocation. */
export const REVOCATION_REASONS: readonly CrlReason[] = Object.keys(CRL_REASONS)
  .filter(isCrlReason)
  .filter((name) => name !== 'removeFromCRL');
