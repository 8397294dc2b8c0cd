/** X.509 certificates (RFC 5280 §4.1): parsing and verification. */
import { hash } from 'node:crypto';
import { berToDer } from '../der/ber.ts';
import {
  bitString,
  children,
  contextConstructed,
  contextPrimitive,
  DerError,
  DerReader,
  integer,
  integerBytes,
  parseDer,
  readAlgorithm,
  readBigInt,
  readElement,
  readInteger,
  readTime,
  sequence,
  Tag,
  unlessMalformed,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { encodePem, parsePem } from '../der/pem.ts';
import { InputError } from '../input-error.ts';
import {
  type BasicConstraints,
  duplicateExtension,
  type Extension,
  findExtension,
  type KeyUsage,
  parseAuthorityKeyIdentifier,
  parseBasicConstraints,
  parseExtensions,
  parseExtKeyUsage,
  parseKeyUsage,
  parseSubjectKeyIdentifier,
} from './extensions.ts';
import { type GeneralName, parseGeneralNames } from './general-name.ts';
import { type Name, namesMatch, parseName } from './name.ts';
import { parsePublicKey, type PublicKeyInfo } from './public-key.ts';
import { ECDSA_ARC, parseSignatureAlgorithm, sameAlgorithm, verifySignature } from './signature-algorithms.ts';
import { readSigned, VerifiedSignatures } from './signed.ts';

/** Content of a TBSCertificate. */
export interface TbsFields {
  /** 1, 2 or 3. */
  readonly version: number;
  /** In the form of {@link serialHex}. */
  readonly serialNumber: string;
  /** Content octets of the INTEGER, as encoded. */
  readonly serialOctets: Buffer;
  /** DER AlgorithmIdentifier in the signed part. */
  readonly signature: Buffer;
  readonly issuer: Name;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** DER Validity. */
  readonly validity: Buffer;
  readonly subject: Name;
  readonly spki: Buffer;
  readonly extensions: readonly Extension[];
}

export interface Certificate extends Omit<TbsFields, 'signature'> {
  readonly der: Buffer;
  /** DER TBSCertificate, which the signature covers. */
  readonly tbs: Buffer;
  readonly publicKey: PublicKeyInfo;
  readonly subjectAltNames: readonly GeneralName[];
  readonly isCa: boolean;
  readonly pathLength: number | undefined;
  /** undefined without the extension: all usages are allowed. */
  readonly keyUsage: readonly KeyUsage[] | undefined;
  /** Dotted OIDs; undefined without the extension: all purposes are allowed. */
  readonly extKeyUsage: readonly string[] | undefined;
  readonly subjectKeyIdentifier: Buffer | undefined;
  readonly authorityKeyIdentifier: Buffer | undefined;
  /** DER AlgorithmIdentifier; decode it with parseSignatureAlgorithm. */
  readonly signatureAlgorithm: Buffer;
  readonly signature: Buffer;
  /** Hex SHA-256 of the DER. */
  readonly fingerprint: string;
}

export function parseTbsCertificate(der: Buffer): TbsFields {
  const reader = DerReader.of(der, 'TBSCertificate');
  const explicitVersion = reader.optional(contextConstructed(0), 'version');
  const version =
    explicitVersion === undefined ? 0 : readInteger(parseDer(explicitVersion.value, Tag.INTEGER, 'version'), 'version');
  if (version < 0 || version > 2) throw new DerError('TBSCertificate.version: unknown');
  const serialOctets = integerBytes(reader.next(Tag.INTEGER, 'serialNumber'), 'TBSCertificate.serialNumber');
  const signature = reader.sequence('signature');
  const issuer = parseName(reader.sequence('issuer'));
  const { raw: validity, value } = reader.next(Tag.SEQUENCE, 'validity');
  const times = new DerReader(value, 'validity');
  const notBefore = readTime(times.next(undefined, 'notBefore'), 'notBefore');
  const notAfter = readTime(times.next(undefined, 'notAfter'), 'notAfter');
  times.end();
  const subject = parseName(reader.sequence('subject'));
  const spki = reader.sequence('subjectPublicKeyInfo');
  reader.optional(contextPrimitive(1), 'issuerUniqueID');
  reader.optional(contextPrimitive(2), 'subjectUniqueID');
  const list = reader.optional(contextConstructed(3), 'extensions');
  reader.end();
  const extensions = list === undefined ? [] : parseExtensions(list.value);
  return {
    version: version + 1,
    serialNumber: serialHex(serialOctets),
    serialOctets,
    signature,
    issuer,
    notBefore,
    notAfter,
    validity,
    subject,
    spki,
    extensions,
  };
}

/**
 * Estuary's text form of a serial number: lowercase hex of the INTEGER content without a leading zero octet. A negative
 * number, which RFC 5280 §4.1.2.2 requires software to handle, is `-` and the hex of its magnitude: −1 (content `ff`)
 * differs from 255 (`00ff`).
 */
export function serialHex(octets: Buffer): string {
  if (octets.readUInt8(0) >= 0x80) {
    const magnitude = (-BigInt.asIntN(octets.length * 8, BigInt(`0x${octets.toString('hex')}`))).toString(16);
    return `-${magnitude.padStart(magnitude.length + (magnitude.length % 2), '0')}`;
  }
  return (octets.length > 1 && octets[0] === 0 ? octets.subarray(1) : octets).toString('hex');
}

/** DER INTEGER from the form of {@link serialHex}. */
export function serialInteger(serial: string): Buffer {
  return serial.startsWith('-') ? integer(-BigInt(`0x${serial.slice(1)}`)) : integer(Buffer.from(serial, 'hex'));
}

/** The fields of a certificate record, all from TBSCertificate. */
export type IssuedContent = Pick<
  Certificate,
  'serialNumber' | 'subject' | 'subjectAltNames' | 'notBefore' | 'notAfter' | 'subjectKeyIdentifier'
>;

/** {@link IssuedContent} of a parsed TBSCertificate. @throws DerError */
export function issuedContent(tbs: TbsFields): IssuedContent {
  const { serialNumber, subject, notBefore, notAfter, extensions } = tbs;
  return {
    ...{ serialNumber, subject, notBefore, notAfter },
    subjectAltNames: extensionValue(extensions, OID.subjectAltName, parseGeneralNames) ?? [],
    subjectKeyIdentifier: extensionValue(extensions, OID.subjectKeyIdentifier, parseSubjectKeyIdentifier),
  };
}

function extensionValue<T>(
  extensions: readonly Extension[],
  dotted: string,
  parse: (value: Buffer) => T,
): T | undefined {
  const extension = findExtension(extensions, dotted);
  return extension && parse(extension.value);
}

/** RFC 5280 forbids empty lists. In a certificate of others, they say nothing. */
const unlessEmpty =
  <T>(parse: (value: Buffer) => T[]) =>
  (value: Buffer): T[] =>
    value.equals(EMPTY) ? [] : parse(value);
const EMPTY = sequence();

const NOT_A_CA: BasicConstraints = { ca: false, pathLength: undefined };

/** @throws DerError on anything that is not one certificate. */
export function parseCertificate(der: Buffer): Certificate {
  const names = { whole: 'Certificate', content: 'tbsCertificate', signature: 'signatureValue' };
  const { content, algorithm: signatureAlgorithm, signature } = readSigned(der, names);
  const tbs = content.raw;
  const { signature: algorithmInside, ...fields } = parseTbsCertificate(tbs);
  if (!sameAlgorithm(algorithmInside, signatureAlgorithm))
    throw new DerError('Certificate: the signature algorithms inside and outside differ');
  const twice = duplicateExtension(fields.extensions);
  if (twice !== undefined) throw new DerError(`Certificate: extension ${twice} more than once`);

  const read = <T>(dotted: string, parse: (value: Buffer) => T): T | undefined =>
    extensionValue(fields.extensions, dotted, parse);
  const basic = read(OID.basicConstraints, parseBasicConstraints) ?? NOT_A_CA;
  let fingerprint: string | undefined;
  return {
    ...fields,
    der,
    tbs,
    signatureAlgorithm,
    signature,
    publicKey: parsePublicKey(fields.spki),
    isCa: basic.ca,
    pathLength: basic.pathLength,
    subjectAltNames: read(OID.subjectAltName, unlessEmpty(parseGeneralNames)) ?? [],
    keyUsage: read(OID.keyUsage, parseKeyUsage),
    extKeyUsage: read(OID.extKeyUsage, unlessEmpty(parseExtKeyUsage)),
    subjectKeyIdentifier: read(OID.subjectKeyIdentifier, parseSubjectKeyIdentifier),
    authorityKeyIdentifier: read(OID.authorityKeyIdentifier, parseAuthorityKeyIdentifier),
    get fingerprint() {
      return (fingerprint ??= hash('sha256', der, 'hex'));
    },
  };
}

/** Those of the certificates that can be read. */
export const readableCertificates = (ders: readonly Buffer[]): Certificate[] =>
  ders.flatMap((der) => unlessMalformed(() => [parseCertificate(der)], []));

/**
 * Whether two certificates are the same one. The caller has verified possession of the private key. The encodings may
 * differ: anyone can change an ECDSA signature (r, s) to (r, n − s).
 */
export function isSameCertificate(a: Certificate, b: Certificate): boolean {
  return a.tbs.equals(b.tbs);
}

/** Labels of blocks with certificates; Windows also writes PKCS #7 under the first. */
const CERTIFICATES = /^(?:X509 |TRUSTED )?CERTIFICATE$|^PKCS7$|^CMS$/;

/** All certificates of a PEM text. @throws InputError that says which one cannot be read */
export function parsePemCertificates(text: string): Certificate[] {
  let number = 0;
  try {
    return parsePem(text)
      .filter(({ label }) => CERTIFICATES.test(label))
      .flatMap(({ der }) => {
        number++;
        return certificatesIn(der).map(parseCertificate);
      });
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw new InputError(`certificate ${number} cannot be read: ${error.message}`);
  }
}

/** DER of a certificate in BER, also with OpenSSL's trust settings after it, or those of a SignedData. @throws DerError */
function certificatesIn(block: Buffer): Buffer[] {
  const element = unlessMalformed(() => readElement(block, 0, block.length), undefined) ?? parseDer(berToDer(block));
  const [type, content] = children(element.value);
  if (type?.tag !== Tag.OID || content === undefined) return [element.raw];
  const signedData = children(parseDer(berToDer(content.value), Tag.SEQUENCE, 'SignedData').value);
  const set = signedData.find(({ tag }) => tag === contextConstructed(0));
  return children(set?.value ?? Buffer.alloc(0)).map(({ raw }) => raw);
}

/**
 * Whether a configured trust anchor can be a CA. RFC 5280 §6.1: an anchor is a name and a key, so it may be a self-issued
 * certificate of version 1 or 2, or have keyCertSign without basicConstraints.
 */
export function isAnchor(certificate: Certificate): boolean {
  const { isCa, extensions, keyUsage, version, issuer, subject } = certificate;
  if (isCa || findExtension(extensions, OID.basicConstraints) !== undefined) return isCa;
  return keyUsage?.includes('keyCertSign') ?? (version < 3 && namesMatch(issuer, subject));
}

/** Concatenated PEM of the certificates, in order. */
export function pemOf(certificates: readonly Certificate[]): string {
  return certificates.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
}

/** A renewal verifies the same signature twice: for the client's certificate path, and to check the issuing CA. */
const verified = new VerifiedSignatures();

/**
 * Whether the issuer's key signed the certificate. Does not check names, validity or purposes. False for an unaccepted
 * algorithm (SHA-1, unknown) or an unusable key. Valid results are cached.
 */
export async function verifyCertificateSignature(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  if (verified.has(certificate.fingerprint, issuer.spki)) return true;
  try {
    const algorithm = parseSignatureAlgorithm(certificate.signatureAlgorithm);
    const valid = await verifySignature(algorithm, issuer.publicKey, certificate.tbs, certificate.signature);
    if (valid) verified.add(certificate.fingerprint, issuer.spki);
    return valid;
  } catch (error) {
    if (error instanceof DerError) return false;
    throw error;
  }
}

/** Whether both are certificates of one CA: with the same name and key. */
export const isSameCa = (a: Certificate, b: Certificate): boolean =>
  a.spki.equals(b.spki) && namesMatch(a.subject, b.subject);

/** Whether the CA issued the certificate: compares the names (RFC 5280 §7.1), then verifies the signature. */
export async function isIssuedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  return namesMatch(certificate.issuer, issuer.subject) && (await verifyCertificateSignature(certificate, issuer));
}

/** Group orders of P-256, P-384 and P-521 (NIST SP 800-186 §3.2.1), the only curves that issuers may use. */
const ORDERS: readonly bigint[] = [
  0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  0x1fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
];

/**
 * Hex SHA-256 of a certificate and of its ECDSA variants. Anyone can change an ECDSA signature (r, s) to (r, n − s),
 * which is equally valid, so a configured fingerprint names the same certificate in either form.
 *
 * The order n depends on the issuer's key. The function tries each order instead: a form for the wrong order has no
 * valid signature, but it still contains the same tbsCertificate, so a match with it is harmless.
 */
export function fingerprintsOf(certificate: Certificate): readonly string[] {
  const twins = unlessMalformed(() => twinsOf(certificate), []);
  return [certificate.fingerprint, ...twins.map((der) => hash('sha256', der, 'hex'))];
}

function twinsOf({ tbs, signatureAlgorithm, signature }: Certificate): Buffer[] {
  if (!readAlgorithm(parseDer(signatureAlgorithm)).oid.startsWith(ECDSA_ARC)) return [];
  const reader = DerReader.of(signature, 'ECDSA-Sig-Value');
  const r = reader.next(Tag.INTEGER, 'r').raw;
  const s = readBigInt(reader.next(Tag.INTEGER, 's'), 's');
  return ORDERS.filter((order) => s > 0n && s < order).map((order) =>
    sequence(tbs, signatureAlgorithm, bitString(sequence(r, integer(order - s)))),
  );
}
