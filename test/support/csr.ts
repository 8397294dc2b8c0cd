/**
 * PKCS#10 requests for tests, well-formed or broken on purpose: every part can be replaced by raw DER. Built apart from
 * the parser under test, on the DER writer and node:crypto alone.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import {
  bitString,
  explicit,
  ia5String,
  implicitPrimitive,
  integer,
  NULL,
  octetString,
  oid,
  printableString,
  sequence,
  setOf,
  tlv,
  utf8String,
} from '../../src/pki/der/der.ts';

export type KeyKind =
  | 'P-256'
  | 'P-384'
  | 'P-521'
  | 'secp256k1'
  | 'ed25519'
  | 'ed448'
  | 'ml-dsa-44'
  | 'ml-dsa-65'
  | 'ml-dsa-87'
  | 'rsa1024'
  | 'rsa2048'
  | 'rsa3072'
  | 'rsa-pss'
  | 'dsa';

export interface TestKey {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Buffer;
  /** PEM PKCS#8. */
  readonly pem: string;
}

/** A fresh key pair. */
export const makeKey = (kind: KeyKind = 'P-256'): TestKey => testKeyOf(generate(kind).privateKey);

/** @param privateKey PEM PKCS#8, or the key */
export function testKeyOf(privateKey: string | KeyObject): TestKey {
  const key = typeof privateKey === 'string' ? createPrivateKey(privateKey) : privateKey;
  const publicKey = createPublicKey(key);
  return {
    privateKey: key,
    publicKey,
    spki: publicKey.export({ type: 'spki', format: 'der' }),
    pem: key.export({ type: 'pkcs8', format: 'pem' }),
  };
}

function generate(kind: KeyKind): { privateKey: KeyObject; publicKey: KeyObject } {
  switch (kind) {
    case 'ed25519':
      return generateKeyPairSync('ed25519');
    case 'ed448':
      return generateKeyPairSync('ed448');
    case 'ml-dsa-44':
      return generateKeyPairSync('ml-dsa-44');
    case 'ml-dsa-65':
      return generateKeyPairSync('ml-dsa-65');
    case 'ml-dsa-87':
      return generateKeyPairSync('ml-dsa-87');
    case 'rsa-pss':
      return generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
    case 'rsa1024':
      return generateKeyPairSync('rsa', { modulusLength: 1024 });
    case 'rsa2048':
      return generateKeyPairSync('rsa', { modulusLength: 2048 });
    case 'rsa3072':
      return generateKeyPairSync('rsa', { modulusLength: 3072 });
    case 'dsa':
      return generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 });
    default:
      return generateKeyPairSync('ec', { namedCurve: kind });
  }
}

/** AlgorithmIdentifiers by the name OpenSSL gives them. */
export const ALGORITHM = {
  ecdsaSha1: sequence(oid('1.2.840.10045.4.1')),
  ecdsaSha256: sequence(oid('1.2.840.10045.4.3.2')),
  ecdsaSha384: sequence(oid('1.2.840.10045.4.3.3')),
  rsaMd5: sequence(oid('1.2.840.113549.1.1.4'), NULL),
  rsaSha1: sequence(oid('1.2.840.113549.1.1.5'), NULL),
  rsaSha256: sequence(oid('1.2.840.113549.1.1.11'), NULL),
  ed25519: sequence(oid('1.3.101.112')),
  ed448: sequence(oid('1.3.101.113')),
  rsassaPssSha256: Buffer.from(
    '304106092a864886f70d01010a3034a00f300d06096086480165030402010500a11c301a06092a864886f70d010108300d06096086480165030402010500a203020120',
    'hex',
  ),
} as const;

/** Keys whose algorithm signs the message itself, by node's name, with the OID of key and signature. */
export const WITHOUT_HASH: ReadonlyMap<string | undefined, string> = new Map([
  ['ed25519', '1.3.101.112'],
  ['ed448', '1.3.101.113'],
  ['ml-dsa-44', '2.16.840.1.101.3.4.3.17'],
  ['ml-dsa-65', '2.16.840.1.101.3.4.3.18'],
  ['ml-dsa-87', '2.16.840.1.101.3.4.3.19'],
]);

/** One attribute of a relative distinguished name. */
export const attribute = (type: string, value: Buffer): Buffer => sequence(oid(type), value);
/** A Name with one attribute to an RDN. */
export const name = (...attributes: Buffer[]): Buffer => sequence(...attributes.map((attribute) => setOf(attribute)));
/** CN=`text`, UTF8String. */
export const commonName = (text: string): Buffer => name(attribute('2.5.4.3', utf8String(text)));
/** C=`text`, PrintableString. */
export const country = (text: string): Buffer => attribute('2.5.4.6', printableString(text));

/** An Extension around the DER of its value. */
export function extension(id: string, value: Buffer, critical?: Buffer): Buffer {
  return sequence(oid(id), ...(critical === undefined ? [] : [critical]), octetString(value));
}

export const dns = (text: string): Buffer => tlv(0x82, Buffer.from(text, 'latin1'));
export const email = (text: string): Buffer => tlv(0x81, Buffer.from(text, 'latin1'));
export const uri = (text: string): Buffer => tlv(0x86, Buffer.from(text, 'latin1'));
export const ip = (...octets: number[]): Buffer => implicitPrimitive(7, Uint8Array.from(octets));
/** A subjectAltName extension. */
export const san = (...names: Buffer[]): Buffer => extension('2.5.29.17', sequence(...names));

/** An Attribute with these values. */
export const csrAttribute = (id: string, ...values: Buffer[]): Buffer => sequence(oid(id), setOf(...values));
/** pkcs-9-at-extensionRequest (RFC 2985 §5.4.2). */
export const extensionRequest = (...extensions: Buffer[]): Buffer =>
  csrAttribute('1.2.840.113549.1.9.14', sequence(...extensions));
/** pkcs-9-at-challengePassword. */
export const challengePassword = (text: string): Buffer => csrAttribute('1.2.840.113549.1.9.7', ia5String(text));

/** The attributes of RFC 7894. */
export const estIdentityLinking = (text: string): Buffer =>
  csrAttribute('1.2.840.113549.1.9.16.2.58', printableString(text));

export const otpChallenge = (text: string): Buffer => csrAttribute('1.2.840.113549.1.9.16.2.56', printableString(text));
export const revocationChallenge = (text: string): Buffer =>
  csrAttribute('1.2.840.113549.1.9.16.2.57', utf8String(text));

export interface CsrParts {
  readonly version?: Buffer;
  readonly subject?: Buffer;
  readonly spki?: Buffer;
  /** Attributes in the order given; null leaves the field `[0]` out. */
  readonly attributes?: readonly Buffer[] | null;
  /** AlgorithmIdentifier of the signature, where it is not the key's usual one. */
  readonly algorithm?: Buffer;
  /** The hash to sign with, where it is not SHA-256. */
  readonly hash?: string;
  /** Replaces the signature. */
  readonly signature?: Buffer;
  /** Appended inside CertificationRequest, and inside CertificationRequestInfo. */
  readonly trailer?: Buffer;
  readonly infoTrailer?: Buffer;
}

/** A CertificationRequest (DER), signed by `key` over exactly the bytes that it carries. */
export function buildCsr(key: TestKey, parts: CsrParts = {}): Buffer {
  const attributes = parts.attributes === null ? [] : [explicit(0, ...(parts.attributes ?? []))];
  const info = sequence(
    parts.version ?? integer(0),
    parts.subject ?? commonName('device-1'),
    parts.spki ?? key.spki,
    ...attributes,
    parts.infoTrailer ?? Buffer.alloc(0),
  );
  const type = key.privateKey.asymmetricKeyType;
  const hash = WITHOUT_HASH.has(type) ? null : (parts.hash ?? 'sha256');
  const signer = type === 'rsa-pss' ? { key: key.privateKey, saltLength: 32 } : key.privateKey;
  return sequence(
    info,
    parts.algorithm ?? usualAlgorithm(key),
    bitString(parts.signature ?? sign(hash, info, signer)),
    parts.trailer ?? Buffer.alloc(0),
  );
}

/** The AlgorithmIdentifier of the signature that a key makes where nothing else is asked for. */
export function usualAlgorithm(key: TestKey): Buffer {
  const type = key.privateKey.asymmetricKeyType;
  const alone = WITHOUT_HASH.get(type);
  if (alone !== undefined) return sequence(oid(alone));
  if (type === 'rsa-pss') return ALGORITHM.rsassaPssSha256;
  return type === 'rsa' ? ALGORITHM.rsaSha256 : ALGORITHM.ecdsaSha256;
}

/** A SubjectPublicKeyInfo of an EC key with these parameters and this point, whether or not it is one. */
export const ecSpki = (parameters: Buffer, point: Buffer): Buffer =>
  sequence(sequence(oid('1.2.840.10045.2.1'), parameters), bitString(point));

/** A SubjectPublicKeyInfo of an RSA key with these INTEGERs. */
export const rsaSpki = (modulus: Buffer, exponent: Buffer): Buffer =>
  sequence(sequence(oid('1.2.840.113549.1.1.1'), NULL), bitString(sequence(modulus, exponent)));

/** A copy with the octet at `index` (from the end, if negative) replaced. */
export function patched(bytes: Buffer, index: number, octet: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[index < 0 ? copy.length + index : index] = octet;
  return copy;
}

/** The usual request: CN=`cn`, with DNS names. */
export function simpleCsr(key: TestKey, cn = 'device-1', dnsNames: readonly string[] = []): Buffer {
  return buildCsr(key, {
    subject: commonName(cn),
    attributes: dnsNames.length === 0 ? [] : [extensionRequest(san(...dnsNames.map(dns)))],
  });
}

/** As it goes over the wire: base64 in one line. */
export const onTheWire = (der: Buffer): string => der.toString('base64');
