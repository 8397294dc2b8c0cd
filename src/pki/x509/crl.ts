/** Certificate revocation lists (RFC 5280 §5), read only. The entries are read on demand: a list may hold 100,000. */
import { serialHex } from './certificate.ts';
import {
  DerError,
  DerReader,
  Tag,
  contextConstructed,
  contextPrimitive,
  integerBytes,
  parseDer,
  readBoolean,
  readElement,
  readInteger,
  readTime,
  children,
} from '../der/der.ts';
import { duplicateExtension, findExtension, parseExtensions, type Extension } from './extensions.ts';
import { parseName, type Name } from './name.ts';
import { OID } from '../der/oids.ts';
import type { PublicKeyInfo } from './public-key.ts';
import { parseSignatureAlgorithm, verifySignature } from './signature-algorithms.ts';
import { readSigned } from './signed.ts';

export interface CertificateList {
  readonly der: Buffer;
  /** DER TBSCertList: what the signature covers. */
  readonly tbs: Buffer;
  readonly issuer: Name;
  readonly thisUpdate: Date;
  /** undefined where the list names none, which RFC 5280 §5.1.2.5 forbids. */
  readonly nextUpdate: Date | undefined;
  readonly extensions: readonly Extension[];
  /** Content of revokedCertificates; empty where nothing is revoked. Read it with {@link revokedEntries}. */
  readonly revoked: Buffer;
  /** DER AlgorithmIdentifier. */
  readonly signatureAlgorithm: Buffer;
  readonly signature: Buffer;
}

export interface RevokedEntry {
  /** Lower-case hex. */
  readonly serialNumber: string;
  readonly extensions: readonly Extension[];
}

/** @throws DerError on anything that is not one CertificateList. */
export function parseCertificateList(der: Buffer): CertificateList {
  const names = { whole: 'CertificateList', content: 'tbsCertList', signature: 'signatureValue' };
  const { content, algorithm: signatureAlgorithm, signature } = readSigned(der, names);
  const tbs = content.raw;
  const reader = DerReader.of(tbs, 'TBSCertList');
  const version = reader.optional(Tag.INTEGER, 'version');
  if (version !== undefined && readInteger(version, 'TBSCertList.version') !== 1)
    throw new DerError('TBSCertList.version: unknown');
  if (!reader.next(Tag.SEQUENCE, 'signature').raw.equals(signatureAlgorithm))
    throw new DerError('CertificateList: the signature algorithms inside and outside differ');
  const issuer = parseName(reader.next(Tag.SEQUENCE, 'issuer').raw);
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

/** The entries one after the other. @throws DerError where one is malformed. */
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

/** How many entries it has, unread. @throws DerError where one is cut off */
export function revokedCount({ revoked }: Pick<CertificateList, 'revoked'>): number {
  let count = 0;
  for (let offset = 0; offset < revoked.length; count++)
    offset += readElement(revoked, offset, revoked.length, 'revokedCertificate').raw.length;
  return count;
}

/**
 * Whether the key made the list's signature.
 * @throws DerError on a signature algorithm that is not supported.
 */
export async function isListSignedBy(list: CertificateList, issuerKey: PublicKeyInfo): Promise<boolean> {
  return verifySignature(parseSignatureAlgorithm(list.signatureAlgorithm), issuerKey, list.tbs, list.signature);
}

// --- issuingDistributionPoint ----------------------------------------------------------------------------------

/** RFC 5280 §5.2.5: which of the issuer's certificates a list speaks of. */
export interface IssuingDistributionPoint {
  /** DER of each GeneralName of the fullName; undefined where the list is not limited to a distribution point. */
  readonly fullName: readonly Buffer[] | undefined;
  readonly onlyContainsUserCerts: boolean;
  readonly onlyContainsCACerts: boolean;
  readonly onlySomeReasons: boolean;
  readonly indirectCRL: boolean;
  readonly onlyContainsAttributeCerts: boolean;
}

/** @throws DerError, also for a name relative to the issuer, which hardly anybody uses */
export function parseIssuingDistributionPoint(value: Buffer): IssuingDistributionPoint {
  const reader = DerReader.of(value, 'IssuingDistributionPoint');
  const point = reader.optional(contextConstructed(0), 'distributionPoint');
  const flag = (n: number): boolean => {
    const element = reader.optional(contextPrimitive(n));
    return element !== undefined && readBoolean(element, 'IssuingDistributionPoint');
  };
  const onlyContainsUserCerts = flag(1);
  const onlyContainsCACerts = flag(2);
  const onlySomeReasons = reader.optional(contextPrimitive(3)) !== undefined;
  const indirectCRL = flag(4);
  const onlyContainsAttributeCerts = flag(5);
  reader.end();
  return {
    fullName: point && fullNames(point.value),
    onlyContainsUserCerts,
    onlyContainsCACerts,
    onlySomeReasons,
    indirectCRL,
    onlyContainsAttributeCerts,
  };
}

function fullNames(choice: Buffer): Buffer[] {
  const name = parseDer(choice, undefined, 'DistributionPointName');
  if (name.tag !== contextConstructed(0)) throw new DerError('DistributionPointName: not a fullName');
  return children(name.value, 'GeneralName').map(({ raw }) => raw);
}

/** DER of every GeneralName of the fullNames in a certificate's cRLDistributionPoints. @throws DerError */
export function distributionPointNames(extensions: readonly Extension[]): Buffer[] {
  const extension = findExtension(extensions, OID.cRLDistributionPoints);
  if (extension === undefined) return [];
  const points = children(parseDer(extension.value, Tag.SEQUENCE, 'CRLDistributionPoints').value, 'DistributionPoint');
  return points.flatMap((element) => {
    const point = new DerReader(element.value, 'DistributionPoint').optional(contextConstructed(0));
    if (point === undefined) return [];
    const name = parseDer(point.value, undefined, 'DistributionPointName');
    return name.tag === contextConstructed(0) ? children(name.value, 'GeneralName').map(({ raw }) => raw) : [];
  });
}
