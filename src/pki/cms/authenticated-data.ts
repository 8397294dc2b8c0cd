/**
 * CMS AuthenticatedData (RFC 5652 §9) under a shared secret, with one PasswordRecipientInfo (RFC 3211), as in RFC 5272
 * §3.2 and RFC 5274 §4.1. Input is DER: convert BER with `berToDer` first.
 */
import { createHash, createHmac, pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import {
  type Algorithm,
  children,
  contextConstructed,
  type DerElement,
  DerError,
  DerReader,
  parseDer,
  readAlgorithm,
  readOid,
  retagged,
  Tag,
  tlv,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import type { HashName } from '../x509/signature-algorithms.ts';
import { type Attribute, onlyValue, parseAttributes, parseContentInfo, parseDigest, sameOctets } from './cms.ts';
import { type AesBits, BLOCK_LENGTH, CBC_OIDS, unwrapKey, unwrapPasswordKey, WRAP_OIDS } from './key-wrap.ts';

/** Accepted HMACs by dotted OID (RFC 4231 §3.1, RFC 8018 appendix B.1); SHA-1 and MD5 are not accepted. */
export const HMAC_HASHES: ReadonlyMap<string, HashName> = new Map<string, HashName>([
  [OID.hmacWithSHA256, 'sha256'],
  [OID.hmacWithSHA384, 'sha384'],
  [OID.hmacWithSHA512, 'sha512'],
]);

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
  if (reader.integer('version') !== 0) throw new DerError('AuthenticatedData.version: not 0');
  const recipients = children(reader.next(Tag.SET, 'recipientInfos').value, 'RecipientInfo');
  const [recipient, ...more] = recipients;
  if (recipient === undefined || more.length > 0) throw new DerError('AuthenticatedData: not exactly one recipient');
  const macAlgorithm = parseHmac(reader.next(Tag.SEQUENCE, 'macAlgorithm'));
  // Content other than id-data requires authenticated attributes, which require a digest.
  const digest = parseDigest(retag(reader.next(contextConstructed(1), 'digestAlgorithm')));
  const encapsulated = reader.enter(Tag.SEQUENCE, 'encapContentInfo');
  const contentType = encapsulated.oid('eContentType');
  const content = encapsulated.next(contextConstructed(0), 'eContent');
  encapsulated.end();
  const attributes = reader.next(contextConstructed(2), 'authAttrs').value;
  const mac = reader.octets('mac');
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
const retag = (element: DerElement): DerElement => retagged(element, Tag.SEQUENCE);

/** NULL parameters count as absent. */
function parseAlgorithm(element: DerElement, what: string): Algorithm {
  const { oid, parameters } = readAlgorithm(element, what);
  return { oid, parameters: parameters?.tag === Tag.NULL ? undefined : parameters };
}

function parseHmac(element: DerElement): HashName {
  const { oid, parameters } = parseAlgorithm(element, 'macAlgorithm');
  const hash = HMAC_HASHES.get(oid);
  if (hash === undefined || parameters !== undefined)
    throw new DerError('macAlgorithm: not HMAC with SHA-256, SHA-384 or SHA-512');
  return hash;
}

function parseRecipient(raw: Buffer): PasswordRecipient {
  const reader = DerReader.of(raw, 'PasswordRecipientInfo', contextConstructed(3));
  if (reader.integer('version') !== 0) throw new DerError('PasswordRecipientInfo: not version 0');
  const derivation = reader.next(contextConstructed(0), 'keyDerivationAlgorithm');
  const encryption = reader.next(Tag.SEQUENCE, 'keyEncryptionAlgorithm');
  const encryptedKey = reader.octets('encryptedKey');
  reader.end();
  const keyEncryption = parseKeyEncryption(encryption);
  return { ...parsePbkdf2(retag(derivation), keyEncryption.bits / 8), keyEncryption, encryptedKey };
}

/** PBKDF2-params (RFC 8018 appendix A.2). */
function parsePbkdf2(element: DerElement, keyLength: number): Pick<PasswordRecipient, 'salt' | 'iterations' | 'prf'> {
  const { oid, parameters } = parseAlgorithm(element, 'keyDerivationAlgorithm');
  if (oid !== OID.pbkdf2 || parameters === undefined) throw new DerError('keyDerivationAlgorithm: not PBKDF2');
  const reader = DerReader.of(parameters.raw, 'PBKDF2-params');
  const salt = reader.octets('salt');
  const iterations = reader.integer('iterationCount');
  const length = reader.nextTag === Tag.INTEGER ? reader.integer('keyLength') : keyLength;
  const prf = reader.optional(Tag.SEQUENCE, 'prf');
  reader.end();
  if (salt.length === 0 || salt.length > MAX_SALT_LENGTH) throw new DerError('PBKDF2-params.salt: bad length');
  if (iterations < 1 || iterations > MAX_ITERATIONS)
    throw new DerError(`PBKDF2-params.iterationCount: not between 1 and ${MAX_ITERATIONS}`);
  if (length !== keyLength) throw new DerError("PBKDF2-params.keyLength: not the key-encryption key's");
  return { salt, iterations, prf: prf === undefined ? 'sha1' : parsePrf(prf) };
}

function parsePrf(element: DerElement): HashName | 'sha1' {
  const { oid, parameters } = parseAlgorithm(element, 'prf');
  const hash = oid === OID.hmacWithSHA1 ? 'sha1' : HMAC_HASHES.get(oid);
  if (hash === undefined || parameters !== undefined) throw new DerError('PBKDF2-params.prf: not supported');
  return hash;
}

const BITS: readonly AesBits[] = [128, 192, 256];

function parseKeyEncryption(element: DerElement): PasswordRecipient['keyEncryption'] {
  const { oid, parameters } = parseAlgorithm(element, 'keyEncryptionAlgorithm');
  const wrapBits = BITS.find((bits) => WRAP_OIDS[bits] === oid);
  if (wrapBits !== undefined && parameters === undefined) return { bits: wrapBits, iv: undefined };
  if (oid !== OID.pwriKek || parameters === undefined)
    throw new DerError('keyEncryptionAlgorithm: neither AES key wrap nor id-alg-PWRI-KEK');
  const cipher = parseAlgorithm(parameters, 'PWRI-KEK');
  const bits = BITS.find((size) => CBC_OIDS[size] === cipher.oid);
  if (bits === undefined || cipher.parameters === undefined) throw new DerError('PWRI-KEK: not AES-CBC');
  const iv = parseDer(cipher.parameters.raw, Tag.OCTET_STRING, 'PWRI-KEK.iv').value;
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
  if (!sameOctets(claimed, digest) || type !== data.contentType) return false;

  const { salt, iterations, prf, keyEncryption, encryptedKey } = data.recipient;
  const { bits, iv } = keyEncryption;
  const kek = await derive(password, salt, iterations, bits / 8, prf);
  const key = iv === undefined ? unwrapKey(bits, kek, encryptedKey) : unwrapPasswordKey(bits, kek, iv, encryptedKey);
  kek.fill(0);
  if (key === undefined) return false;
  const mac = createHmac(data.macAlgorithm, key).update(data.authenticatedAttributesDer).digest();
  key.fill(0);
  return sameOctets(mac, data.mac);
}
