/** CMS EnvelopedData (RFC 5652 §6) for one recipient: a shared AES key, an RSA key (OAEP) or an EC key (RFC 5753). */
import {
  constants,
  createCipheriv,
  createHash,
  diffieHellman,
  generateKeyPair,
  type KeyObject,
  publicEncrypt,
  randomBytes,
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
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import type { PublicKeyInfo } from '../x509/public-key.ts';
import type { HashName } from '../x509/signature-algorithms.ts';
import type { SignerIdentifier } from './cms.ts';
import { aesBits, type AesBits, BLOCK_LENGTH, CBC_OIDS, WRAP_OIDS, wrapKey } from './key-wrap.ts';
import { contentInfo, encodeSignerIdentifier } from './signed-data.ts';

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
