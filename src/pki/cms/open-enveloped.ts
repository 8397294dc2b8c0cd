/** Decrypts CMS EnvelopedData (RFC 5652 §6) with a shared AES key, an RSA key or an EC key (RFC 5753). */
import {
  constants,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  privateDecrypt,
  type KeyObject,
} from 'node:crypto';
import {
  children,
  contextConstructed,
  contextPrimitive,
  DerError,
  DerReader,
  parseDer,
  readAlgorithm,
  sequence,
  Tag,
  type Algorithm,
  type DerElement,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { DIGESTS, type HashName } from '../x509/signature-algorithms.ts';
import { parseContentInfo } from './cms.ts';
import { derive } from './enveloped-data.ts';
import { aesBits, CBC_OIDS, unwrapKey, WRAP_OIDS, type AesBits } from './key-wrap.ts';

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
    const one = DerReader.of(recipient.raw, 'RecipientEncryptedKey');
    one.next(undefined, 'rid');
    const contentKey = unwrapKey(bits, kek, one.octets('encryptedKey'));
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
  const bits = ([128, 192, 256] as const).find((one) => oids[one] === found.oid);
  if (bits === undefined) throw new DerError(`EnvelopedData: unsupported algorithm ${found.oid}`);
  return { ...found, bits };
}
