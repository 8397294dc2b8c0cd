/** SubjectPublicKeyInfo (RFC 5280 §4.1.2.7; RFC 3279, RFC 5480, RFC 8410, RFC 9881). */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';

import {
  bitString,
  DerError,
  DerReader,
  integerBytes,
  NULL,
  oid,
  readAlgorithm,
  readBitStringOctets,
  readOid,
  sequence,
  Tag,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { ML_DSA, type MlDsaParameters } from './key-pair.ts';

export type KeyAlgorithm = 'rsa' | 'rsa-pss' | 'ec' | 'ed25519' | 'ed448' | 'ml-dsa' | 'other';

export interface PublicKeyInfo {
  readonly spki: Buffer;
  readonly algorithm: KeyAlgorithm;
  /** As in `key_types`: `ec:P-256`, `rsa:2048`, `ed25519`, `ml-dsa:65`; `ec:<oid>` or an OID if unknown. */
  readonly keyType: string;
  /** RSA only: unsigned big-endian without leading zeros. */
  readonly rsa: { readonly modulus: Buffer; readonly exponent: Buffer } | undefined;
  /**
   * The key in node:crypto, created on first use. @throws DerError if OpenSSL rejects it (such as a point off its
   * curve)
   */
  readonly keyObject: KeyObject;
}

/** OID of a named curve → its name in `key_types`, and the octets per coordinate. */
const CURVES: ReadonlyMap<string, { readonly name: string; readonly size: number }> = new Map([
  [OID.secp256r1, { name: 'P-256', size: 32 }],
  [OID.secp384r1, { name: 'P-384', size: 48 }],
  [OID.secp521r1, { name: 'P-521', size: 66 }],
]);

/** Larger RSA keys are not parsed: the cost of operations grows with the cube of the size. */
const MAX_MODULUS_BITS = 16384;

class ParsedPublicKey implements PublicKeyInfo {
  readonly spki: Buffer;
  readonly algorithm: KeyAlgorithm;
  readonly keyType: string;
  readonly rsa: PublicKeyInfo['rsa'];
  #keyObject: KeyObject | undefined;

  constructor(spki: Buffer, algorithm: KeyAlgorithm, keyType: string, rsa?: PublicKeyInfo['rsa']) {
    this.spki = spki;
    this.algorithm = algorithm;
    this.keyType = keyType;
    this.rsa = rsa;
  }

  get keyObject(): KeyObject {
    try {
      return (this.#keyObject ??= createPublicKey({ key: this.spki, format: 'der', type: 'spki' }));
    } catch {
      throw new DerError('SubjectPublicKeyInfo: not a usable public key');
    }
  }
}

/** Parses the structure and the key type. {@link publicKeyProblem} checks the strength. @throws DerError */
export function parsePublicKey(spki: Buffer): PublicKeyInfo {
  const reader = DerReader.of(spki, 'SubjectPublicKeyInfo');
  const { oid: dotted, parameters } = readAlgorithm(reader.next(Tag.SEQUENCE, 'algorithm'));
  const key = readBitStringOctets(reader.next(Tag.BIT_STRING, 'subjectPublicKey'), 'subjectPublicKey');
  reader.end();
  switch (dotted) {
    case OID.rsaEncryption:
      // RFC 3279 §2.3.1 requires NULL, and so does every certificate that is issued; some devices write nothing.
      if (parameters === undefined) return rsaKey(sequence(sequence(oid(dotted), NULL), bitString(key)), 'rsa', key);
      if (!parameters.raw.equals(NULL)) throw new DerError('SubjectPublicKeyInfo.parameters: not NULL');
      return rsaKey(spki, 'rsa', key);
    case OID.rsassaPss:
      return rsaKey(spki, 'rsa-pss', key);
    case OID.ecPublicKey:
      if (parameters === undefined) throw new DerError('SubjectPublicKeyInfo.parameters: no curve');
      if (parameters.tag !== Tag.OID) return new ParsedPublicKey(spki, 'ec', 'ec:explicit');
      return ecKey(spki, readOid(parameters, 'namedCurve'), key);
    case OID.ed25519:
    case OID.ed448: {
      const name = dotted === OID.ed25519 ? 'ed25519' : 'ed448';
      if (parameters !== undefined) throw new DerError(`SubjectPublicKeyInfo.parameters: present with ${name}`);
      if (key.length !== (name === 'ed25519' ? 32 : 57)) throw new DerError('subjectPublicKey: wrong length');
      return new ParsedPublicKey(spki, name, name);
    }
    default: {
      const mlDsa = ML_DSA.find((parameters) => parameters.oid === dotted);
      return mlDsa === undefined
        ? new ParsedPublicKey(spki, 'other', dotted)
        : mlDsaKey(spki, mlDsa, parameters !== undefined, key);
    }
  }
}

/** RFC 9881 §2, §4: no parameters; the BIT STRING contains the raw key. */
function mlDsaKey(spki: Buffer, mlDsa: MlDsaParameters, hasParameters: boolean, key: Buffer): PublicKeyInfo {
  if (hasParameters) throw new DerError(`SubjectPublicKeyInfo.parameters: present with ${mlDsa.name}`);
  if (key.length !== mlDsa.publicKey) throw new DerError('subjectPublicKey: wrong length');
  return new ParsedPublicKey(spki, 'ml-dsa', mlDsa.keyType);
}

/** Substitute for a key that {@link parsePublicKey} rejects, in requests whose key is ignored (RFC 7030 §4.4.1). */
export function unreadableKey(spki: Buffer): PublicKeyInfo {
  return new ParsedPublicKey(spki, 'other', 'unreadable');
}

function rsaKey(spki: Buffer, algorithm: 'rsa' | 'rsa-pss', key: Buffer): PublicKeyInfo {
  const reader = DerReader.of(key, 'RSAPublicKey');
  const modulus = magnitude(integerBytes(reader.next(Tag.INTEGER, 'modulus'), 'modulus'), 'modulus');
  const exponent = magnitude(integerBytes(reader.next(Tag.INTEGER, 'publicExponent'), 'exponent'), 'publicExponent');
  reader.end();
  const bits = bitLength(modulus);
  if (bits > MAX_MODULUS_BITS) throw new DerError(`RSAPublicKey.modulus: more than ${MAX_MODULUS_BITS} bits`);
  return new ParsedPublicKey(spki, algorithm, `${algorithm}:${bits}`, { modulus, exponent });
}

function magnitude(bytes: Buffer, field: string): Buffer {
  const first = bytes.readUInt8(0);
  if (first >= 0x80) throw new DerError(`RSAPublicKey.${field}: negative`);
  return first === 0 ? bytes.subarray(1) : bytes;
}

function bitLength(bytes: Buffer): number {
  const [first] = bytes;
  return first === undefined ? 0 : bytes.length * 8 - Math.clz32(first) + 24;
}

function ecKey(spki: Buffer, dotted: string, point: Buffer): PublicKeyInfo {
  const curve = CURVES.get(dotted);
  if (curve === undefined) return new ParsedPublicKey(spki, 'ec', `ec:${dotted}`);
  const [form] = point;
  const length = form === 4 ? 2 * curve.size + 1 : form === 2 || form === 3 ? curve.size + 1 : -1;
  if (point.length !== length) throw new DerError('subjectPublicKey: not an elliptic curve point');
  return new ParsedPublicKey(spki, 'ec', `ec:${curve.name}`);
}

/**
 * Whether both are the same key, in any encoding. Compares only keys of the same type: otherwise OpenSSL leaves an
 * error in its queue, which fails the thread's next TLS read on an unrelated connection.
 * @throws DerError if a key is unusable
 */
export function samePublicKey(a: PublicKeyInfo, b: PublicKeyInfo): boolean {
  if (a.spki.equals(b.spki)) return true;
  if (a.keyType !== b.keyType || a.keyObject.asymmetricKeyType !== b.keyObject.asymmetricKeyType) return false;
  return a.keyObject.equals(b.keyObject);
}

interface PublicKeyProblem {
  readonly kind: 'unsupported' | 'weak';
  /** Continues "the public key …". */
  readonly reason: string;
}

/**
 * FIPS 186-5 §5.1 and the CA/Browser Forum's baseline requirements: smaller exponents are fragile with faulty padding.
 */
const LEAST_EXPONENT = 65_537n;

/**
 * Why a key type is not certified or too weak. Does not check that points are on their curve.
 * @param leastExponent minimum RSA exponent
 */
export function publicKeyProblem(key: PublicKeyInfo, leastExponent = LEAST_EXPONENT): PublicKeyProblem | undefined {
  switch (key.algorithm) {
    case 'ec':
      if (key.keyType === 'ec:explicit')
        return { kind: 'unsupported', reason: 'gives explicit curve parameters; use a named curve' };
      return /^ec:P-/.test(key.keyType)
        ? undefined
        : { kind: 'unsupported', reason: unsupportedCurve(key.keyType.slice(3)) };
    case 'rsa':
    case 'rsa-pss':
      return key.rsa && rsaProblem(key.rsa.modulus, key.rsa.exponent, leastExponent);
    case 'ed25519':
    case 'ed448': {
      const { name, octets, smallOrder } = EDWARDS[key.algorithm];
      return isSmallOrder(key.spki.subarray(-octets), smallOrder)
        ? { kind: 'weak', reason: `is an ${name} point of small order, with which anyone can sign` }
        : undefined;
    }
    case 'ml-dsa':
      return undefined;
    case 'other':
      return { kind: 'unsupported', reason: unsupportedKey(key.keyType) };
  }
}

/**
 * The y coordinates (little-endian hex, without the sign of x) of points of low order, including non-canonical
 * encodings. Anyone can forge a signature under such a key.
 */
const EDWARDS = {
  ed25519: {
    name: 'Ed25519',
    octets: 32,
    smallOrder: new Set([
      '00'.repeat(32),
      `01${'00'.repeat(31)}`,
      '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
      'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
      `ec${'ff'.repeat(30)}7f`,
      `ed${'ff'.repeat(30)}7f`,
      `ee${'ff'.repeat(30)}7f`,
    ]),
  },
  ed448: {
    name: 'Ed448',
    octets: 57,
    smallOrder: new Set([
      '00'.repeat(57),
      `01${'00'.repeat(56)}`,
      `fe${'ff'.repeat(27)}fe${'ff'.repeat(27)}00`,
      `${'ff'.repeat(28)}fe${'ff'.repeat(27)}00`,
      `${'00'.repeat(28)}${'ff'.repeat(28)}00`,
    ]),
  },
} as const;

function isSmallOrder(point: Buffer, smallOrder: ReadonlySet<string>): boolean {
  const y = Buffer.from(point);
  const last = y.length - 1;
  y.writeUInt8(y.readUInt8(last) & 0x7f, last);
  return smallOrder.has(y.toString('hex'));
}

function rsaProblem(modulus: Buffer, exponent: Buffer, leastExponent: bigint): PublicKeyProblem | undefined {
  const weak = (reason: string): PublicKeyProblem => ({ kind: 'weak', reason });
  const bits = bitLength(modulus);
  if (bits < 2048) return weak(`is RSA with ${bits} bits; at least 2048 are required`);
  if (hasSmallFactor(modulus)) return weak('has an RSA modulus with a small factor');
  if (exponent.length > 8) return weak('has an RSA exponent of more than 64 bits');
  const e = BigInt(`0x0${exponent.toString('hex')}`);
  if (e < leastExponent || e % 2n === 0n) return weak(`has an RSA exponent that is even or less than ${leastExponent}`);
  return undefined;
}

const SMALL_PRIMES = Array.from({ length: 752 }, (_, n) => n).filter(
  (n) => n > 1 && !Array.from({ length: n }, (_, d) => d).some((d) => d > 1 && d * d <= n && n % d === 0),
);

const SMALL_PRODUCT = SMALL_PRIMES.reduce((product, prime) => product * BigInt(prime), 1n);

/** Trial division by the primes below 752 (NIST SP 800-89 §5.3.3): one long division, then short ones. */
function hasSmallFactor(modulus: Buffer): boolean {
  const rest = BigInt(`0x0${modulus.toString('hex')}`) % SMALL_PRODUCT;
  return SMALL_PRIMES.some((prime) => rest % BigInt(prime) === 0n);
}

/** Hex SHA-256 of a SubjectPublicKeyInfo. */
export function spkiHash({ spki }: { readonly spki: Buffer }): string {
  return hash('sha256', spki, 'hex');
}

/** RFC 5280 §4.2.1.2 method 1: SHA-1 of the BIT STRING's octets. @throws DerError */
export const subjectKeyIdentifier = (spki: Buffer): Buffer => hash('sha1', keyOctets(spki), 'buffer');

/** The octets of subjectPublicKey. @throws DerError */
export function keyOctets(spki: Buffer): Buffer {
  const reader = DerReader.of(spki, 'SubjectPublicKeyInfo');
  reader.next(Tag.SEQUENCE, 'algorithm');
  return readBitStringOctets(reader.next(Tag.BIT_STRING, 'subjectPublicKey'), 'subjectPublicKey');
}

// --- keys that Estuary does not certify, for helpful messages ------------------------------------------------------

/** Alternatives, after "use". */
const POSSIBLE = 'an RSA, ECDSA (P-256, P-384, P-521), Ed25519, Ed448 or ML-DSA key';

/** Key agreement algorithms (dotted OID): their keys cannot sign, so no request is possible. */
const KEY_AGREEMENT: ReadonlyMap<string, string> = new Map([
  ['1.2.840.10046.2.1', 'a Diffie-Hellman key'],
  ['1.2.840.113549.1.3.1', 'a Diffie-Hellman key'],
  ['1.3.101.110', 'an X25519 key'],
  ['1.3.101.111', 'an X448 key'],
  ['2.16.840.1.101.3.4.4.1', 'an ML-KEM-512 key'],
  ['2.16.840.1.101.3.4.4.2', 'an ML-KEM-768 key'],
  ['2.16.840.1.101.3.4.4.3', 'an ML-KEM-1024 key'],
]);

/** Signature algorithms and EC curves (dotted OIDs). */
const SIGNING: ReadonlyMap<string, string> = new Map([
  ['1.2.840.10040.4.1', 'a DSA key'],
  ['1.2.643.2.2.19', 'a GOST R 34.10-2001 key'],
  ['1.2.643.7.1.1.1.1', 'a GOST R 34.10-2012 key'],
  ['1.2.643.7.1.1.1.2', 'a GOST R 34.10-2012 key'],
  ['1.2.840.113549.1.1.7', 'an RSAES-OAEP key'],
]);

const OTHER_CURVES: ReadonlyMap<string, string> = new Map([
  ['1.2.156.10197.1.301', 'SM2'],
  ['1.2.840.10045.3.1.1', 'P-192'],
  ['1.3.132.0.10', 'secp256k1'],
  ['1.3.132.0.33', 'P-224'],
  ['1.3.36.3.3.2.8.1.1.7', 'brainpoolP256r1'],
  ['1.3.36.3.3.2.8.1.1.8', 'brainpoolP256t1'],
  ['1.3.36.3.3.2.8.1.1.11', 'brainpoolP384r1'],
  ['1.3.36.3.3.2.8.1.1.12', 'brainpoolP384t1'],
  ['1.3.36.3.3.2.8.1.1.13', 'brainpoolP512r1'],
  ['1.3.36.3.3.2.8.1.1.14', 'brainpoolP512t1'],
]);

/**
 * Why a key of this algorithm is not certified; continues "the public key …".
 * @param algorithm dotted OID, or the placeholder for an unreadable key
 */
function unsupportedKey(algorithm: string): string {
  const agreement = KEY_AGREEMENT.get(algorithm);
  if (agreement !== undefined) return `is ${agreement}, which cannot sign a request; use ${POSSIBLE}`;
  return `is ${SIGNING.get(algorithm) ?? `of the type ${algorithm}`}, which is not supported; use ${POSSIBLE}`;
}

/** Why an EC key on this curve (dotted OID) is not certified; continues "the public key …". */
function unsupportedCurve(curve: string): string {
  return `is on the curve ${OTHER_CURVES.get(curve) ?? curve}, which is not supported; use ${POSSIBLE}`;
}
