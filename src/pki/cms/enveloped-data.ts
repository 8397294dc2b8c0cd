/**
 * CMS EnvelopedData (RFC 5652 §6): encrypts for one recipient with a shared AES key, an RSA key (OAEP) or an EC key (RFC
 * 5753), and decrypts.
 */
import {
  constants,
  createCipheriv,
  createHash,
  diffieHellman,
  generateKeyPair,
  type KeyObject,
  publicEncrypt,
  randomBytes,
  createDecipheriv,
  createPublicKey,
  privateDecrypt,
} from 'node:crypto';
import { promisify } from 'node:util';
import {
  children,
  contextConstructed,
  explicit,
  implicitPrimitive,
  integer,
  NULL,
  octetString,
  oid,
  parseDer,
  readAlgorithm,
  readOid,
  sequence,
  setOf,
  Tag,
  tlv,
  contextPrimitive,
  DerError,
  DerReader,
  type Algorithm,
  type DerElement,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import type { PublicKeyInfo } from '../x509/public-key.ts';
import { type HashName, DIGESTS } from '../x509/signature-algorithms.ts';
import { type SignerIdentifier, parseContentInfo, contentInfo, encodeSignerIdentifier } from './cms.ts';
import { aesBits, type AesBits, BLOCK_LENGTH, CBC_OIDS, WRAP_OIDS, wrapKey, unwrapKey } from './key-wrap.ts';

export type Recipient =
  | {
      readonly kind: 'kek';
      readonly keyIdentifier: Buffer;
      /** 16, 24 or 32 octets. */
      readonly key: Buffer;
    }
  | { readonly kind: 'publicKey'; readonly rid: SignerIdentifier; readonly publicKey: PublicKeyInfo };

interface Envelope {
  /** Dotted OID of the content type. */
  readonly contentType: string;
  readonly content: Buffer;
  readonly recipient: Recipient;
  /** Key size of AES-CBC for the content. */
  readonly contentBits: AesBits;
  /** Key size of AES key wrap under an agreed key; a shared key wraps with its own size. */
  readonly wrapBits: AesBits;
}

/**
 * @returns DER ContentInfo around EnvelopedData
 * @throws DerError if the recipient's key is invalid (a point off its curve); RangeError for a key type that cannot
 * encrypt
 */
export async function buildEnvelopedData(envelope: Envelope): Promise<Buffer> {
  const { contentType, content, recipient, contentBits, wrapBits } = envelope;
  const key = randomBytes(contentBits / 8);
  try {
    const { version, info } = await recipientInfo(recipient, key, wrapBits);
    const iv = randomBytes(BLOCK_LENGTH);
    const cipher = createCipheriv(`aes-${contentBits}-cbc`, key, iv);
    const encrypted = Buffer.concat([cipher.update(content), cipher.final()]);
    const encryptedContent = sequence(
      oid(contentType),
      sequence(oid(CBC_OIDS[contentBits]), octetString(iv)),
      implicitPrimitive(0, encrypted),
    );
    // RFC 5652 §6.1: 0 if every RecipientInfo has version 0.
    const enveloped = sequence(integer(version === 0 ? 0 : 2), setOf(info), encryptedContent);
    return contentInfo(OID.envelopedData, enveloped);
  } finally {
    key.fill(0);
  }
}

interface RecipientInfo {
  readonly version: number;
  readonly info: Buffer;
}

function recipientInfo(recipient: Recipient, key: Buffer, wrapBits: AesBits): Promise<RecipientInfo> {
  if (recipient.kind === 'kek') return Promise.resolve(kekRecipient(recipient.keyIdentifier, recipient.key, key));
  const { rid, publicKey } = recipient;
  if (publicKey.algorithm === 'rsa') return Promise.resolve(keyTransport(rid, publicKey, key));
  if (publicKey.algorithm === 'ec') return keyAgreement(rid, publicKey, key, wrapBits);
  throw new RangeError(`a ${publicKey.keyType} key cannot encrypt`);
}

/** KEKRecipientInfo (RFC 5652 §6.2.3). */
function kekRecipient(keyIdentifier: Buffer, kek: Buffer, key: Buffer): RecipientInfo {
  const bits = aesBits(kek);
  const info = tlv(
    contextConstructed(2),
    integer(4),
    sequence(octetString(keyIdentifier)),
    sequence(oid(WRAP_OIDS[bits])),
    octetString(wrapKey(bits, kek, key)),
  );
  return { version: 4, info };
}

const SHA256 = sequence(oid(OID.sha256), NULL);
/** RSAES-OAEP-params (RFC 4055 §4.1) with SHA-256 throughout. */
const OAEP = sequence(oid(OID.rsaOAEP), sequence(explicit(0, SHA256), explicit(1, sequence(oid(OID.mgf1), SHA256))));

/** KeyTransRecipientInfo (RFC 5652 §6.2.1). */
function keyTransport(rid: SignerIdentifier, { keyObject }: PublicKeyInfo, key: Buffer): RecipientInfo {
  const version = rid.kind === 'subjectKeyIdentifier' ? 2 : 0;
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  const encrypted = publicEncrypt({ key: keyObject, padding, oaepHash: 'sha256' }, key);
  return { version, info: sequence(integer(version), encodeSignerIdentifier(rid), OAEP, octetString(encrypted)) };
}

const generateEc = promisify(generateKeyPair);
const agree = promisify<{ privateKey: KeyObject; publicKey: KeyObject }, Buffer>(diffieHellman);

/** KeyAgreeRecipientInfo (RFC 5652 §6.2.2) with an ephemeral key and the X9.63 KDF (RFC 5753 §3.1.1). */
async function keyAgreement(
  rid: SignerIdentifier,
  recipient: PublicKeyInfo,
  key: Buffer,
  wrapBits: AesBits,
): Promise<RecipientInfo> {
  const { keyObject } = recipient;
  const ephemeral = await generateEc('ec', { namedCurve: recipient.keyType.slice('ec:'.length) });
  const hash = recipient.keyType === 'ec:P-256' ? 'sha256' : 'sha384';
  const scheme = hash === 'sha256' ? OID.dhSinglePassStdDHSha256Kdf : OID.dhSinglePassStdDHSha384Kdf;
  const wrapAlgorithm = sequence(oid(WRAP_OIDS[wrapBits]));
  const secret = await agree({ privateKey: ephemeral.privateKey, publicKey: keyObject });
  const kek = derive(hash, secret, wrapAlgorithm, wrapBits);
  const encryptedKey = octetString(wrapKey(wrapBits, kek, key));
  secret.fill(0);
  kek.fill(0);
  const info = tlv(
    contextConstructed(1),
    integer(3),
    explicit(0, originatorKey(ephemeral.publicKey)),
    sequence(oid(scheme), wrapAlgorithm),
    sequence(sequence(recipientIdentifier(rid), encryptedKey)),
  );
  return { version: 3, info };
}

/** OriginatorPublicKey [1] IMPLICIT: the fields of a SubjectPublicKeyInfo. */
function originatorKey(publicKey: KeyObject): Buffer {
  return tlv(contextConstructed(1), parseDer(publicKey.export({ format: 'der', type: 'spki' }), Tag.SEQUENCE).value);
}

/** KeyAgreeRecipientIdentifier, which wraps a key identifier in RecipientKeyIdentifier. */
function recipientIdentifier(rid: SignerIdentifier): Buffer {
  if (rid.kind === 'issuerAndSerialNumber') return encodeSignerIdentifier(rid);
  return tlv(contextConstructed(0), octetString(rid.keyIdentifier));
}

/**
 * ANSI X9.63 KDF over ECC-CMS-SharedInfo (RFC 5753 §7.2).
 * @param ukm the user keying material: the content of its OCTET STRING
 */
export function derive(
  hash: 'sha1' | HashName,
  secret: Buffer,
  wrapAlgorithm: Buffer,
  bits: AesBits,
  ukm?: Buffer,
): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bits);
  const partyInfo = ukm === undefined ? [] : [explicit(0, octetString(ukm))];
  const sharedInfo = sequence(wrapAlgorithm, ...partyInfo, explicit(2, octetString(length)));
  // Two blocks of the shortest hash are enough for an AES key.
  const blocks = [1, 2].map((counter) =>
    createHash(hash)
      .update(secret)
      .update(Buffer.from([0, 0, 0, counter]))
      .update(sharedInfo)
      .digest(),
  );
  return Buffer.concat(blocks).subarray(0, bits / 8);
}

// --- decryption ----------------------------------------------------------------------------------------------------

/** A shared key of 16, 24 or 32 octets, or a private key. */
export type DecryptionKey = Buffer | KeyObject;

/**
 * @param der ContentInfo around EnvelopedData
 * @throws DerError if it is malformed, for another recipient, or uses an unsupported algorithm
 */
export function openEnvelopedData(der: Buffer, key: DecryptionKey): { contentType: string; content: Buffer } {
  const info = parseContentInfo(der);
  if (info.contentType !== OID.envelopedData) throw new DerError('ContentInfo.contentType: not EnvelopedData');
  const reader = DerReader.of(info.content, 'EnvelopedData');
  reader.integer('version');
  reader.optional(contextConstructed(0), 'originatorInfo');
  const recipients = children(reader.next(Tag.SET, 'recipientInfos').value);
  const encrypted = reader.enter(Tag.SEQUENCE, 'encryptedContentInfo');
  const contentType = encrypted.oid('contentType');
  const { bits, parameters } = aesAlgorithm(encrypted.next(Tag.SEQUENCE, 'contentEncryptionAlgorithm'), CBC_OIDS);
  const octets = octetsOf(encrypted.next(undefined, 'encryptedContent'));
  const iv = parseDer(parameters?.raw ?? Buffer.alloc(0), Tag.OCTET_STRING, 'iv').value;
  for (const recipient of recipients) {
    const contentKey = contentKeyOf(recipient, key);
    if (contentKey === undefined) continue;
    try {
      const decipher = createDecipheriv(`aes-${bits}-cbc`, contentKey, iv);
      return { contentType, content: Buffer.concat([decipher.update(octets), decipher.final()]) };
    } catch {
      // With another recipient's key, RSA decryption with PKCS #1 v1.5 padding yields random octets.
    } finally {
      contentKey.fill(0);
    }
  }
  throw new DerError('EnvelopedData: no recipient has this key');
}

/** The [0] IMPLICIT OCTET STRING, which a BER sender may have split. */
function octetsOf({ tag, value }: DerElement): Buffer {
  if (tag === contextPrimitive(0)) return value;
  if (tag !== contextConstructed(0)) throw new DerError('EnvelopedData.encryptedContent: unexpected tag');
  return Buffer.concat(children(value).map((part) => part.value));
}

/** @returns undefined if this is not the recipient's key */
function contentKeyOf({ tag, value, raw }: DerElement, key: DecryptionKey): Buffer | undefined {
  if (Buffer.isBuffer(key)) return tag === contextConstructed(2) ? fromSharedKey(value, key) : undefined;
  if (tag === Tag.SEQUENCE && key.asymmetricKeyType === 'rsa') return fromKeyTransport(raw, key);
  return tag === contextConstructed(1) && key.asymmetricKeyType === 'ec' ? fromKeyAgreement(value, key) : undefined;
}

function fromSharedKey(value: Buffer, key: Buffer): Buffer | undefined {
  const reader = new DerReader(value, 'KEKRecipientInfo');
  reader.integer('version');
  reader.next(Tag.SEQUENCE, 'kekid');
  const { bits } = aesAlgorithm(reader.next(Tag.SEQUENCE, 'keyEncryptionAlgorithm'), WRAP_OIDS);
  if (bits !== aesBits(key)) return undefined;
  return unwrapKey(bits, key, reader.octets('encryptedKey'));
}

function fromKeyTransport(raw: Buffer, key: KeyObject): Buffer | undefined {
  const reader = DerReader.of(raw, 'KeyTransRecipientInfo');
  reader.integer('version');
  reader.next(undefined, 'rid');
  const { oid, parameters } = readAlgorithm(reader.next(Tag.SEQUENCE, 'keyEncryptionAlgorithm'));
  const encrypted = reader.octets('encryptedKey');
  if (oid !== OID.rsaOAEP && oid !== OID.rsaEncryption)
    throw new DerError(`KeyTransRecipientInfo: unsupported algorithm ${oid}`);
  const padding = oid === OID.rsaOAEP ? constants.RSA_PKCS1_OAEP_PADDING : constants.RSA_PKCS1_PADDING;
  try {
    return privateDecrypt({ key, padding, oaepHash: oaepHash(parameters) }, encrypted);
  } catch (error) {
    if (error instanceof DerError) throw error;
    return undefined;
  }
}

/** RSAES-OAEP-params (RFC 4055 §4.1); the default is SHA-1. */
function oaepHash(parameters: DerElement | undefined): string {
  if (parameters?.tag !== Tag.SEQUENCE) return 'sha1';
  const hash = new DerReader(parameters.value, 'RSAES-OAEP-params').optional(contextConstructed(0), 'hashAlgorithm');
  if (hash === undefined) return 'sha1';
  const name = DIGESTS.get(readAlgorithm(parseDer(hash.value)).oid);
  if (name === undefined) throw new DerError('RSAES-OAEP-params: unsupported hash');
  return name;
}

const KDF_HASHES: ReadonlyMap<string, 'sha1' | HashName> = new Map<string, 'sha1' | HashName>([
  [OID.dhSinglePassStdDHSha1Kdf, 'sha1'],
  [OID.dhSinglePassStdDHSha256Kdf, 'sha256'],
  [OID.dhSinglePassStdDHSha384Kdf, 'sha384'],
  [OID.dhSinglePassStdDHSha512Kdf, 'sha512'],
]);

function fromKeyAgreement(value: Buffer, key: KeyObject): Buffer | undefined {
  const reader = new DerReader(value, 'KeyAgreeRecipientInfo');
  reader.integer('version');
  const originator = parseDer(
    reader.next(contextConstructed(0), 'originator').value,
    contextConstructed(1),
    'originatorKey',
  );
  const ukm = reader.optional(contextConstructed(1), 'ukm');
  const scheme = readAlgorithm(reader.next(Tag.SEQUENCE, 'keyEncryptionAlgorithm'));
  const hash = KDF_HASHES.get(scheme.oid);
  if (hash === undefined || scheme.parameters === undefined)
    throw new DerError(`KeyAgreeRecipientInfo: unsupported algorithm ${scheme.oid}`);
  const { bits } = aesAlgorithm(scheme.parameters, WRAP_OIDS);
  const secret = agreedSecret(originator.value, key);
  if (secret === undefined) return undefined;
  const material = ukm && parseDer(ukm.value, Tag.OCTET_STRING, 'ukm').value;
  const kek = derive(hash, secret, scheme.parameters.raw, bits, material);
  for (const recipient of children(reader.next(Tag.SEQUENCE, 'recipientEncryptedKeys').value)) {
    const fields = DerReader.of(recipient.raw, 'RecipientEncryptedKey');
    fields.next(undefined, 'rid');
    const contentKey = unwrapKey(bits, kek, fields.octets('encryptedKey'));
    if (contentKey !== undefined) return contentKey;
  }
  return undefined;
}

/**
 * @param originator the fields of a SubjectPublicKeyInfo; its algorithm may omit the curve (RFC 5753 §3.1.1)
 * @returns undefined for a key on another curve
 */
function agreedSecret(originator: Buffer, privateKey: KeyObject): Buffer | undefined {
  const fields = children(originator);
  const own = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const ownAlgorithm = DerReader.of(own, 'SubjectPublicKeyInfo').sequence('algorithm');
  const point = fields.at(-1)?.raw ?? Buffer.alloc(0);
  try {
    const publicKey = createPublicKey({ key: sequence(ownAlgorithm, point), format: 'der', type: 'spki' });
    return diffieHellman({ privateKey, publicKey });
  } catch {
    return undefined;
  }
}

function aesAlgorithm(element: DerElement, oids: Readonly<Record<AesBits, string>>): Algorithm & { bits: AesBits } {
  const found = readAlgorithm(element);
  const bits = ([128, 192, 256] as const).find((size) => oids[size] === found.oid);
  if (bits === undefined) throw new DerError(`EnvelopedData: unsupported algorithm ${found.oid}`);
  return { ...found, bits };
}

// --- what a client can decrypt --------------------------------------------------------------------------------------

/**
 * SMIMECapabilities (RFC 8551 §2.5.2) of a CSR for a server-generated key: what the client can decrypt (RFC 7030
 * §4.4.1).
 */
export interface SMimeCapability {
  readonly oid: string;
  /** The OID in the parameters if they are an AlgorithmIdentifier (RFC 5753 §7: the key wrap). */
  readonly inner: string | undefined;
}

/** @param der the attribute's value. @throws DerError */
export function parseSMimeCapabilities(der: Buffer): SMimeCapability[] {
  return children(parseDer(der, Tag.SEQUENCE, 'SMIMECapabilities').value, 'SMIMECapability').map((element) => {
    const { oid, parameters } = readAlgorithm(element, 'SMIMECapability');
    return { oid, inner: parameters?.tag === Tag.SEQUENCE ? firstOid(parameters.value) : undefined };
  });
}

function firstOid(value: Buffer): string | undefined {
  const [first] = children(value);
  return first?.tag === Tag.OID ? readOid(first) : undefined;
}
