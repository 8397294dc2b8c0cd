/**
 * CMS SignedData (RFC 5652 §5): parsing, verification and signing, for CMC, certs-only messages and server-generated
 * keys. Input is DER: convert BER with `berToDer` first.
 */
import { createHash, timingSafeEqual, type KeyObject } from 'node:crypto';
import { serialHex, type Certificate, serialInteger } from '../x509/certificate.ts';
import {
  children,
  contextConstructed,
  contextPrimitive,
  DerError,
  DerReader,
  integerBytes,
  oid,
  parseDer,
  readAlgorithm,
  readFields,
  readOid,
  sequence,
  Tag,
  tlv,
  type DerElement,
  explicit,
  integer,
  octetString,
  setOf,
  time,
} from '../der/der.ts';
import { parseName, type Name } from '../x509/name.ts';
import { OID, oidName } from '../der/oids.ts';
import { ML_DSA } from '../x509/key-pair.ts';
import type { PublicKeyInfo } from '../x509/public-key.ts';
import {
  DIGESTS,
  parseSignatureAlgorithm,
  SIGNATURE_ALGORITHMS,
  verifySignature,
  type HashName,
  type SignatureAlgorithm,
  createSignature,
  defaultSignatureAlgorithm,
} from '../x509/signature-algorithms.ts';
import { InputError } from '../input-error.ts';

/** An attribute of a signer, or of a PKCS #10 request. */
export interface Attribute {
  readonly oid: string;
  readonly values: readonly Buffer[];
}

/** Identifies the signer's certificate by issuer and serial number, or by key identifier. */
export type SignerIdentifier =
  | {
      readonly kind: 'issuerAndSerialNumber';
      readonly issuer: Name;
      /** as serialHex writes it */ readonly serialNumber: string;
    }
  | { readonly kind: 'subjectKeyIdentifier'; readonly keyIdentifier: Buffer };

export interface SignerInfo {
  readonly sid: SignerIdentifier;
  readonly digest: MessageDigest;
  readonly signatureAlgorithm: SignatureAlgorithm;
  readonly signature: Buffer;
  readonly signedAttributes: readonly Attribute[] | undefined;
  /** The SET OF Attribute as signed (RFC 5652 §5.4). */
  readonly signedAttributesDer: Buffer | undefined;
}

export interface SignedData {
  /** Dotted OID of the encapsulated content. */
  readonly contentType: string;
  /** undefined if detached or certs-only. */
  readonly content: Buffer | undefined;
  /** DER of each X.509 certificate; other kinds are omitted. */
  readonly certificates: readonly Buffer[];
  readonly crls: readonly Buffer[];
  readonly signerInfos: readonly SignerInfo[];
}

/** Hashes for the messageDigest attribute; SHAKE256 with 512 bits (RFC 8702 §3.1) only with ML-DSA. */
type MessageDigest = HashName | 'shake256';

function digestOf(content: Buffer, digest: MessageDigest): Buffer {
  return createHash(digest, digest === 'shake256' ? { outputLength: 64 } : {})
    .update(content)
    .digest();
}

/** Content type of a ContentInfo (dotted OID) and the DER of its content. @throws DerError */
export function parseContentInfo(der: Buffer): { contentType: string; content: Buffer } {
  return readFields(parseDer(der, undefined, 'ContentInfo'), 'ContentInfo', (fields) => ({
    contentType: fields.oid('contentType'),
    content: parseDer(fields.next(contextConstructed(0), 'content').value, undefined, 'ContentInfo.content').raw,
  }));
}

/** @param der ContentInfo around SignedData. @throws DerError */
export function parseSignedData(der: Buffer): SignedData {
  const { contentType, content } = parseContentInfo(der);
  if (contentType !== OID.signedData) throw new DerError('ContentInfo.contentType: not SignedData');
  const reader = DerReader.of(content, 'SignedData');
  reader.integer('version');
  reader.next(Tag.SET, 'digestAlgorithms');
  const encapsulated = reader.enter(Tag.SEQUENCE, 'encapContentInfo');
  const eContentType = encapsulated.oid('eContentType');
  const eContent = encapsulated.optional(contextConstructed(0), 'eContent');
  encapsulated.end();
  const certificates = reader.optional(contextConstructed(0), 'certificates');
  const crls = reader.optional(contextConstructed(1), 'crls');
  const signerInfos = reader.next(Tag.SET, 'signerInfos');
  reader.end();
  return {
    contentType: eContentType,
    content: eContent && parseDer(eContent.value, Tag.OCTET_STRING, 'eContent').value,
    certificates: sequencesOf(certificates),
    crls: sequencesOf(crls),
    signerInfos: children(signerInfos.value, 'SignerInfo').map(parseSignerInfo),
  };
}

/** The choices that are untagged SEQUENCEs: X.509 certificates and CRLs. The others have context tags. */
function sequencesOf(set: DerElement | undefined): Buffer[] {
  if (set === undefined) return [];
  return children(set.value)
    .filter(({ tag }) => tag === Tag.SEQUENCE)
    .map(({ raw }) => raw);
}

function parseSignerInfo(element: DerElement): SignerInfo {
  if (element.tag !== Tag.SEQUENCE) throw new DerError('SignerInfo: unexpected tag');
  const reader = new DerReader(element.value, 'SignerInfo');
  reader.integer('version');
  const sid = parseSignerIdentifier(reader.next(undefined, 'sid'));
  const digestAlgorithm = reader.next(Tag.SEQUENCE, 'digestAlgorithm');
  const signed = reader.optional(contextConstructed(0), 'signedAttrs');
  const algorithm = reader.sequence('signatureAlgorithm');
  const signature = reader.octets('signature');
  reader.optional(contextConstructed(1), 'unsignedAttrs');
  reader.end();
  const isMlDsa = ML_DSA.some(({ oid: dotted }) => dotted === algorithmOid(algorithm));
  const digest = isMlDsa ? mlDsaDigest(digestAlgorithm, signed !== undefined) : parseDigest(digestAlgorithm);
  return {
    sid,
    digest,
    signatureAlgorithm: cmsSignatureAlgorithm(algorithm, digest),
    signature,
    signedAttributes: signed && parseAttributes(signed.value),
    signedAttributesDer: signed && tlv(Tag.SET, signed.value),
  };
}

/** SignerIdentifier (RFC 5652 §5.3). @throws DerError */
function parseSignerIdentifier(element: DerElement): SignerIdentifier {
  if (element.tag === contextPrimitive(0)) return { kind: 'subjectKeyIdentifier', keyIdentifier: element.value };
  return readFields(element, 'IssuerAndSerialNumber', (fields) => ({
    kind: 'issuerAndSerialNumber',
    issuer: parseName(fields.sequence('issuer')),
    serialNumber: serialHex(integerBytes(fields.next(Tag.INTEGER, 'serialNumber'))),
  }));
}

export function parseDigest(element: DerElement): HashName {
  const digest = DIGESTS.get(readAlgorithm(element, 'DigestAlgorithmIdentifier').oid);
  if (digest === undefined) throw new DerError('DigestAlgorithmIdentifier: not SHA-256, SHA-384 or SHA-512');
  return digest;
}

/** RFC 9882 §3.3: the digest algorithm is irrelevant without signed attributes; with them, SHAKE256 is allowed. */
function mlDsaDigest(element: DerElement, hasAttributes: boolean): MessageDigest {
  if (!hasAttributes) return 'sha512';
  const { oid: digest } = readAlgorithm(element, 'DigestAlgorithmIdentifier');
  return digest === OID.shake256 ? 'shake256' : parseDigest(element);
}

const algorithmOid = (der: Buffer): string => readAlgorithm(parseDer(der), 'SignatureAlgorithmIdentifier').oid;

/** CMS may identify an RSA signature by rsaEncryption alone; the digest algorithm completes it. */
function cmsSignatureAlgorithm(der: Buffer, digest: MessageDigest): SignatureAlgorithm {
  if (algorithmOid(der) !== OID.rsaEncryption || digest === 'shake256') return parseSignatureAlgorithm(der);
  return SIGNATURE_ALGORITHMS[`${digest}WithRSAEncryption`];
}

export function readAttribute(element: DerElement): Attribute {
  return readFields(element, 'Attribute', (fields) => ({
    oid: fields.oid('type'),
    values: children(fields.next(Tag.SET, 'values').value, 'AttributeValue').map(({ raw }) => raw),
  }));
}

/** @param value the content of a SET OF Attribute */
export const parseAttributes = (value: Buffer): Attribute[] => children(value, 'Attribute').map(readAttribute);

/**
 * Verifies a signature (RFC 5652 §5.4, §5.6): messageDigest matches the content, contentType agrees, and the key
 * verifies the signature over the signed attributes or, without them, over the content. The caller decides whether to
 * trust the key.
 * @throws DerError for a malformed attribute
 */
export async function verifySignerInfo(
  signedData: Pick<SignedData, 'contentType' | 'content'>,
  signer: SignerInfo,
  key: PublicKeyInfo,
): Promise<boolean> {
  const { content, contentType } = signedData;
  if (content === undefined) return false;
  if (signer.signatureAlgorithm.hash !== undefined && signer.signatureAlgorithm.hash !== signer.digest) return false;
  if (signer.signedAttributes === undefined || signer.signedAttributesDer === undefined) {
    // RFC 5652 §5.3: only id-data may be signed without attributes.
    return contentType === OID.data && verifySignature(signer.signatureAlgorithm, key, content, signer.signature);
  }
  if (!digestMatches(signedData, signer)) return false;
  if (readOid(parseDer(onlyValue(signer.signedAttributes, OID.contentType), Tag.OID)) !== contentType) return false;
  return verifySignature(signer.signatureAlgorithm, key, signer.signedAttributesDer, signer.signature);
}

/**
 * Whether messageDigest matches the content; true without signed attributes. Does not verify the signature.
 * @throws DerError if the attribute is missing or malformed
 */
export function digestMatches({ content }: Pick<SignedData, 'content'>, signer: SignerInfo): boolean {
  if (content === undefined) return false;
  if (signer.signedAttributes === undefined) return true;
  const digest = digestOf(content, signer.digest);
  const claimed = parseDer(onlyValue(signer.signedAttributes, OID.messageDigest), Tag.OCTET_STRING).value;
  return sameOctets(claimed, digest);
}

/** Compares in constant time. */
export const sameOctets = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

/** The single value of the only attribute of this type, which is required. @throws DerError */
export function onlyValue(attributes: readonly Attribute[], type: string): Buffer {
  const found = attributes.filter((attribute) => attribute.oid === type);
  const [value, ...more] = found[0]?.values ?? [];
  if (found.length !== 1 || value === undefined || more.length > 0)
    throw new DerError(`attributes: not exactly one ${oidName(type)}`);
  return value;
}

// --- signing -------------------------------------------------------------------------------------------------------

/** A key that signs CMS content: a local file or a CA's signer. */
export interface CmsSigner {
  readonly sid: SignerIdentifier;
  readonly digest: HashName;
  readonly signatureAlgorithm: SignatureAlgorithm;
  sign(data: Buffer): Promise<Buffer>;
}

export function issuerAndSerialNumber(certificate: Pick<Certificate, 'issuer' | 'serialNumber'>): SignerIdentifier {
  return { kind: 'issuerAndSerialNumber', issuer: certificate.issuer, serialNumber: certificate.serialNumber };
}

/** A signer with a private key in memory. EdDSA and ML-DSA use SHA-512 (RFC 8419 §2.3, RFC 9882 §3.3). */
export function keySigner(privateKey: KeyObject, publicKey: PublicKeyInfo, sid: SignerIdentifier): CmsSigner {
  const algorithm = defaultSignatureAlgorithm(publicKey.keyType);
  if (algorithm === undefined) throw new InputError(`a ${publicKey.keyType} key cannot sign CMS content`);
  return {
    sid,
    digest: algorithm.hash ?? 'sha512',
    signatureAlgorithm: algorithm,
    sign: (data) => createSignature(algorithm, privateKey, publicKey.keyType, data),
  };
}

interface SignedDataContent {
  readonly contentType: string;
  readonly content: Buffer;
  readonly certificates?: readonly Buffer[];
  readonly crls?: readonly Buffer[];
  readonly signers: readonly CmsSigner[];
  readonly signingTime: Date;
}

/** ContentInfo around SignedData (DER), each signer with contentType, messageDigest and signingTime. */
export async function buildSignedData(input: SignedDataContent): Promise<Buffer> {
  const { contentType, content, certificates = [], crls = [], signers } = input;
  const bySki = signers.some(({ sid }) => sid.kind === 'subjectKeyIdentifier');
  const version = contentType !== OID.data || bySki ? 3 : 1;
  const digests = [...new Set(signers.map(({ digest }) => digest))].map(digestAlgorithm);
  const infos = await Promise.all(signers.map((signer) => signerInfo(signer, input)));
  const signedData = sequence(
    integer(version),
    setOf(...digests),
    sequence(oid(contentType), explicit(0, octetString(content))),
    ...(certificates.length === 0 ? [] : [tlv(contextConstructed(0), ...certificates)]),
    ...(crls.length === 0 ? [] : [tlv(contextConstructed(1), ...crls)]),
    setOf(...infos),
  );
  return contentInfo(OID.signedData, signedData);
}

export function contentInfo(contentType: string, content: Buffer): Buffer {
  return sequence(oid(contentType), explicit(0, content));
}

/** A digest's AlgorithmIdentifier, without parameters (RFC 5754 §2). */
export const digestAlgorithm = (digest: HashName): Buffer => sequence(oid(OID[digest]));

async function signerInfo(signer: CmsSigner, input: SignedDataContent): Promise<Buffer> {
  const attributes = setOf(
    sequence(oid(OID.contentType), setOf(oid(input.contentType))),
    sequence(oid(OID.signingTime), setOf(time(input.signingTime))),
    sequence(oid(OID.messageDigest), setOf(octetString(createHash(signer.digest).update(input.content).digest()))),
  );
  const signature = await signer.sign(attributes);
  return sequence(
    integer(signer.sid.kind === 'subjectKeyIdentifier' ? 3 : 1),
    encodeSignerIdentifier(signer.sid),
    digestAlgorithm(signer.digest),
    tlv(contextConstructed(0), parseDer(attributes).value),
    signer.signatureAlgorithm.der,
    octetString(signature),
  );
}

export function encodeSignerIdentifier(sid: SignerIdentifier): Buffer {
  if (sid.kind === 'subjectKeyIdentifier') return tlv(contextPrimitive(0), sid.keyIdentifier);
  return sequence(sid.issuer.der, serialInteger(sid.serialNumber));
}

/**
 * Certs-only and crls-only messages: degenerate SignedData without content or signers (RFC 5272 §4.1, RFC 8951 §3.2.1,
 * RFC 8295 §4.2).
 */
const VERSION_1 = integer(1);
const EMPTY_SET = setOf();
const NO_CONTENT = sequence(oid(OID.data));

/** Keeps the given order: /cacerts returns the issuing CA first. Like OpenSSL, this does not sort the SET OF. */
export function certsOnly(certificates: readonly Buffer[]): Buffer {
  return degenerate(tlv(contextConstructed(0), ...certificates));
}

/** @param crls DER */
export function crlsOnly(crls: readonly Buffer[]): Buffer {
  return degenerate(tlv(contextConstructed(1), ...crls));
}

function degenerate(contents: Buffer): Buffer {
  const signedData = sequence(VERSION_1, EMPTY_SET, NO_CONTENT, contents, EMPTY_SET);
  return sequence(oid(OID.signedData), explicit(0, signedData));
}

/** The certificates (DER) of a certs-only message, in order. @throws DerError, also for other SignedData */
export function parseCertsOnly(der: Buffer): Buffer[] {
  const { certificates, signerInfos } = parseSignedData(der);
  if (signerInfos.length > 0) throw new DerError('SignedData.signerInfos: not empty');
  return [...certificates];
}
