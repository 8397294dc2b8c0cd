/**
 * CMS AuthenticatedData (RFC 5652 §9) under a shared secret, with one PasswordRecipientInfo (RFC 3211), as in RFC 5272
 * §3.2 and RFC 5274 §4.1. Input is DER: convert BER with `berToDer` first.
 */
import { createHash, createHmac, pbkdf2, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import {
  children,
  contextConstructed,
  DerError,
  DerReader,
  parseDer,
  readInteger,
  readOid,
  Tag,
  tlv,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import type { HashName } from '../x509/signature-algorithms.ts';
import { type Attribute, onlyValue, parseAttributes, parseContentInfo, parseDigest } from './cms.ts';
import { type AesBits, BLOCK_LENGTH, CBC_OIDS, unwrapKey, unwrapPasswordKey, WRAP_OIDS } from './key-wrap.ts';

/** HMAC's AlgorithmIdentifiers (RFC 4231 §3.1, RFC 8018 appendix B.1). */
const HASHES: ReadonlyMap<string, HashName> = new Map<string, HashName>([
  [OID.hmacWithSHA256, 'sha256'],
  [OID.hmacWithSHA384, 'sha384'],
  [OID.hmacWithSHA512, 'sha512'],
]);

/** The hash of an HMAC (dotted OID); undefined for SHA-1, MD5 and unknown OIDs. */
export function hmacHash(dotted: string): HashName | undefined {
  return HASHES.get(dotted);
}

/** Bounds the work that a sender can cause: at most a tenth of a second of one core. */
export const MAX_ITERATIONS = 300_000;
const MAX_SALT_LENGTH = 256;

/** PasswordRecipientInfo (RFC 5652 §6.2.4). */
interface PasswordRecipient {
  readonly salt: Buffer;
  readonly iterations: number;
  /** PBKDF2's PRF. HMAC-SHA-1 is the default (RFC 8018 appendix A.2) and still secure here. */
  readonly prf: HashName | 'sha1';
  /** With an IV: id-alg-PWRI-KEK over AES-CBC; without: AES key wrap. */
  readonly keyEncryption: { readonly bits: AesBits; readonly iv: Buffer | undefined };
  readonly encryptedKey: Buffer;
}

export interface AuthenticatedData {
  /** Dotted OID of the encapsulated content; untrusted until {@link verifyAuthenticatedData}. */
  readonly contentType: string;
  readonly content: Buffer;
  readonly recipient: PasswordRecipient;
  readonly mac: Buffer;
  readonly macAlgorithm: HashName;
  readonly digest: HashName;
  readonly authenticatedAttributes: readonly Attribute[];
  /** The SET OF Attribute that the MAC covers (RFC 5652 §9.2). */
  readonly authenticatedAttributesDer: Buffer;
  readonly unauthenticatedAttributes: readonly Attribute[];
}

/**
 * @param der ContentInfo around AuthenticatedData with exactly one password recipient
 * @throws DerError, also for unsupported algorithms and more than {@link MAX_ITERATIONS} iterations
 */
export function parseAuthenticatedData(der: Buffer): AuthenticatedData {
  const info = parseContentInfo(der);
  if (info.contentType !== OID.authenticatedData) throw new DerError('ContentInfo.contentType: not AuthenticatedData');
  const reader = DerReader.of(info.content, 'AuthenticatedData');
  if (readInteger(reader.next(Tag.INTEGER, 'version')) !== 0) throw new DerError('AuthenticatedData.version: not 0');
  const recipients = children(reader.next(Tag.SET, 'recipientInfos').value, 'RecipientInfo');
  const [recipient, ...more] = recipients;
  if (recipient === undefined || more.length > 0) throw new DerError('AuthenticatedData: not exactly one recipient');
  const macAlgorithm = parseHmac(reader.next(Tag.SEQUENCE, 'macAlgorithm').raw);
  // Content other than id-data requires authenticated attributes, which require a digest.
  const digest = parseDigest(parseDer(retag(reader.next(contextConstructed(1), 'digestAlgorithm').value)));
  const encapsulated = reader.enter(Tag.SEQUENCE, 'encapContentInfo');
  const contentType = readOid(encapsulated.next(Tag.OID, 'eContentType'));
  const content = encapsulated.next(contextConstructed(0), 'eContent');
  encapsulated.end();
  const attributes = reader.next(contextConstructed(2), 'authAttrs').value;
  const mac = reader.next(Tag.OCTET_STRING, 'mac').value;
  const unauthenticated = reader.optional(contextConstructed(3), 'unauthAttrs');
  reader.end();
  return {
    contentType,
    content: parseDer(content.value, Tag.OCTET_STRING, 'eContent').value,
    recipient: parseRecipient(recipient.raw),
    mac,
    macAlgorithm,
    digest,
    authenticatedAttributes: parseAttributes(attributes),
    authenticatedAttributesDer: tlv(Tag.SET, attributes),
    unauthenticatedAttributes: unauthenticated === undefined ? [] : parseAttributes(unauthenticated.value),
  };
}

/** Restores the SEQUENCE tag that an IMPLICIT tag replaced. */
const retag = (value: Buffer): Buffer => tlv(Tag.SEQUENCE, value);

/** An algorithm's OID, and its parameters unless absent or NULL. */
function parseAlgorithm(der: Buffer, what: string): { algorithm: string; parameters: Buffer | undefined } {
  const reader = DerReader.of(der, what);
  const algorithm = readOid(reader.next(Tag.OID, 'algorithm'));
  const parameters = reader.done ? undefined : reader.next(undefined, 'parameters');
  reader.end();
  return { algorithm, parameters: parameters?.tag === Tag.NULL ? undefined : parameters?.raw };
}

function parseHmac(der: Buffer): HashName {
  const { algorithm, parameters } = parseAlgorithm(der, 'macAlgorithm');
  const hash = hmacHash(algorithm);
  if (hash === undefined || parameters !== undefined)
    throw new DerError('macAlgorithm: not HMAC with SHA-256, SHA-384 or SHA-512');
  return hash;
}

function parseRecipient(raw: Buffer): PasswordRecipient {
  const reader = DerReader.of(raw, 'PasswordRecipientInfo', contextConstructed(3));
  if (readInteger(reader.next(Tag.INTEGER, 'version')) !== 0)
    throw new DerError('PasswordRecipientInfo: not version 0');
  const derivation = reader.next(contextConstructed(0), 'keyDerivationAlgorithm').value;
  const encryption = reader.next(Tag.SEQUENCE, 'keyEncryptionAlgorithm').raw;
  const encryptedKey = reader.next(Tag.OCTET_STRING, 'encryptedKey').value;
  reader.end();
  const keyEncryption = parseKeyEncryption(encryption);
  return { ...parsePbkdf2(retag(derivation), keyEncryption.bits / 8), keyEncryption, encryptedKey };
}

/** PBKDF2-params (RFC 8018 appendix A.2). */
function parsePbkdf2(der: Buffer, keyLength: number): Pick<PasswordRecipient, 'salt' | 'iterations' | 'prf'> {
  const { algorithm, parameters } = parseAlgorithm(der, 'keyDerivationAlgorithm');
  if (algorithm !== OID.pbkdf2 || parameters === undefined) throw new DerError('keyDerivationAlgorithm: not PBKDF2');
  const reader = DerReader.of(parameters, 'PBKDF2-params');
  const salt = reader.next(Tag.OCTET_STRING, 'salt').value;
  const iterations = readInteger(reader.next(Tag.INTEGER, 'iterationCount'), 'iterationCount');
  const length = reader.optional(Tag.INTEGER, 'keyLength');
  const prf = reader.optional(Tag.SEQUENCE, 'prf');
  reader.end();
  if (salt.length === 0 || salt.length > MAX_SALT_LENGTH) throw new DerError('PBKDF2-params.salt: bad length');
  if (iterations < 1 || iterations > MAX_ITERATIONS)
    throw new DerError(`PBKDF2-params.iterationCount: not between 1 and ${MAX_ITERATIONS}`);
  if (length !== undefined && readInteger(length, 'keyLength') !== keyLength)
    throw new DerError("PBKDF2-params.keyLength: not the key-encryption key's");
  return { salt, iterations, prf: prf === undefined ? 'sha1' : parsePrf(prf.raw) };
}

function parsePrf(der: Buffer): HashName | 'sha1' {
  const { algorithm, parameters } = parseAlgorithm(der, 'prf');
  const hash = algorithm === OID.hmacWithSHA1 ? 'sha1' : hmacHash(algorithm);
  if (hash === undefined || parameters !== undefined) throw new DerError('PBKDF2-params.prf: not supported');
  return hash;
}

const BITS: readonly AesBits[] = [128, 192, 256];

function parseKeyEncryption(der: Buffer): PasswordRecipient['keyEncryption'] {
  const { algorithm, parameters } = parseAlgorithm(der, 'keyEncryptionAlgorithm');
  const wrapBits = BITS.find((bits) => WRAP_OIDS[bits] === algorithm);
  if (wrapBits !== undefined && parameters === undefined) return { bits: wrapBits, iv: undefined };
  if (algorithm !== OID.pwriKek || parameters === undefined)
    throw new DerError('keyEncryptionAlgorithm: neither AES key wrap nor id-alg-PWRI-KEK');
  const cipher = parseAlgorithm(parameters, 'PWRI-KEK');
  const bits = BITS.find((size) => CBC_OIDS[size] === cipher.algorithm);
  if (bits === undefined || cipher.parameters === undefined) throw new DerError('PWRI-KEK: not AES-CBC');
  const iv = parseDer(cipher.parameters, Tag.OCTET_STRING, 'PWRI-KEK.iv').value;
  if (iv.length !== BLOCK_LENGTH) throw new DerError('PWRI-KEK.iv: bad length');
  return { bits, iv };
}

const derive = promisify(pbkdf2);

/**
 * Whether the content was authenticated with this secret (RFC 5652 §9.3). The key derivation runs in the thread pool;
 * the caller bounds the concurrency.
 * @param password CMC: the identification in UTF-8 followed by the shared secret (RFC 5272 §3.2)
 * @throws DerError for a malformed attribute
 */
export async function verifyAuthenticatedData(data: AuthenticatedData, password: Buffer): Promise<boolean> {
  // Check first what needs no key derivation.
  const digest = createHash(data.digest).update(data.content).digest();
  const claimed = parseDer(onlyValue(data.authenticatedAttributes, OID.messageDigest), Tag.OCTET_STRING).value;
  const type = readOid(parseDer(onlyValue(data.authenticatedAttributes, OID.contentType), Tag.OID));
  if (!equal(claimed, digest) || type !== data.contentType) return false;

  const { salt, iterations, prf, keyEncryption, encryptedKey } = data.recipient;
  const { bits, iv } = keyEncryption;
  const kek = await derive(password, salt, iterations, bits / 8, prf);
  const key = iv === undefined ? unwrapKey(bits, kek, encryptedKey) : unwrapPasswordKey(bits, kek, iv, encryptedKey);
  kek.fill(0);
  if (key === undefined) return false;
  const mac = createHmac(data.macAlgorithm, key).update(data.authenticatedAttributesDer).digest();
  key.fill(0);
  return equal(mac, data.mac);
}

const equal = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
