/** Signature AlgorithmIdentifiers (RFC 4055, RFC 5758, RFC 8410, RFC 9881) and their node:crypto equivalents. */
import { constants, sign, verify, type KeyObject } from 'node:crypto';

import {
  DerError,
  DerReader,
  NULL,
  Tag,
  contextConstructed,
  explicit,
  integer,
  oid,
  parseDer,
  readAlgorithm,
  readInteger,
  sequence,
} from '../der/der.ts';
import { OID, oidName } from '../der/oids.ts';
import { ML_DSA, mlDsaOf } from './key-pair.ts';
import type { KeyAlgorithm, PublicKeyInfo } from './public-key.ts';

export type HashName = 'sha256' | 'sha384' | 'sha512';

export interface SignatureAlgorithm {
  readonly der: Buffer;
  readonly oid: string;
  /** The standard name, for messages. */
  readonly name: string;
  readonly scheme: 'rsa-pkcs1' | 'rsa-pss' | 'ecdsa' | 'eddsa' | 'ml-dsa';
  /** undefined for EdDSA and ML-DSA, which sign the message itself. */
  readonly hash: HashName | undefined;
  /** RSASSA-PSS only. */
  readonly saltLength: number | undefined;
}

type Known = Omit<SignatureAlgorithm, 'der' | 'oid' | 'saltLength'>;

const KNOWN: ReadonlyMap<string, Known> = new Map<string, Known>([
  [OID.sha256WithRSAEncryption, { name: 'sha256WithRSAEncryption', scheme: 'rsa-pkcs1', hash: 'sha256' }],
  [OID.sha384WithRSAEncryption, { name: 'sha384WithRSAEncryption', scheme: 'rsa-pkcs1', hash: 'sha384' }],
  [OID.sha512WithRSAEncryption, { name: 'sha512WithRSAEncryption', scheme: 'rsa-pkcs1', hash: 'sha512' }],
  [OID.ecdsaWithSHA256, { name: 'ecdsaWithSHA256', scheme: 'ecdsa', hash: 'sha256' }],
  [OID.ecdsaWithSHA384, { name: 'ecdsaWithSHA384', scheme: 'ecdsa', hash: 'sha384' }],
  [OID.ecdsaWithSHA512, { name: 'ecdsaWithSHA512', scheme: 'ecdsa', hash: 'sha512' }],
  [OID.ed25519, { name: 'Ed25519', scheme: 'eddsa', hash: undefined }],
  [OID.ed448, { name: 'Ed448', scheme: 'eddsa', hash: undefined }],
  ...ML_DSA.map(({ oid: dotted, name }) => [dotted, { name, scheme: 'ml-dsa', hash: undefined }] as const),
]);

/** Accepted digests by dotted OID; SHA-1 and MD5 are not accepted. */
export const DIGESTS: ReadonlyMap<string, HashName> = new Map<string, HashName>([
  [OID.sha256, 'sha256'],
  [OID.sha384, 'sha384'],
  [OID.sha512, 'sha512'],
]);

/** A well-formed AlgorithmIdentifier that is not accepted (SHA-1, MD5, unknown). */
export class UnsupportedSignatureAlgorithm extends DerError {
  readonly oid: string;

  constructor(dotted: string) {
    super(`AlgorithmIdentifier: signature algorithm ${dotted} is not supported`);
    this.name = 'UnsupportedSignatureAlgorithm';
    this.oid = dotted;
  }
}

/** @throws DerError; {@link UnsupportedSignatureAlgorithm} for an unknown or weak algorithm */
export function parseSignatureAlgorithm(der: Buffer): SignatureAlgorithm {
  const { oid: dotted, parameters } = readAlgorithm(parseDer(der, undefined, 'AlgorithmIdentifier'));
  if (dotted === OID.rsassaPss) {
    if (parameters === undefined) throw new DerError('AlgorithmIdentifier: RSASSA-PSS without parameters');
    return { der, oid: dotted, name: 'RSASSA-PSS', scheme: 'rsa-pss', ...parsePssParameters(parameters.raw) };
  }
  const known = KNOWN.get(dotted);
  if (known === undefined) throw new UnsupportedSignatureAlgorithm(dotted);
  // RFC 4055 §5 requires NULL with RSA. RFC 5758 and RFC 8410 forbid it, but NSS, Dogtag's clients and others write it.
  if (parameters !== undefined && !(parameters.raw.equals(NULL) && known.scheme !== 'ml-dsa'))
    throw new DerError('AlgorithmIdentifier.parameters: unexpected');
  return { der, oid: dotted, ...known, saltLength: undefined };
}

/** Whether two AlgorithmIdentifiers are the same: absent and NULL parameters do not differ. @throws DerError */
export function sameAlgorithm(a: Buffer, b: Buffer): boolean {
  const meaning = (der: Buffer): string => {
    const { oid: dotted, parameters } = readAlgorithm(parseDer(der, undefined, 'AlgorithmIdentifier'));
    return `${dotted} ${(parameters?.raw ?? NULL).toString('hex')}`;
  };
  return a.equals(b) || meaning(a) === meaning(b);
}

/** Weak or retired algorithms that certificates of others still have. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['1.2.840.113549.1.1.2', 'md2WithRSAEncryption'],
  ['1.2.840.113549.1.1.4', 'md5WithRSAEncryption'],
  [OID.sha1WithRSAEncryption, 'sha1WithRSAEncryption'],
  ['1.3.14.3.2.29', 'sha1WithRSA'],
  ['1.2.840.10045.4.1', 'ecdsa-with-SHA1'],
  ['1.2.840.10040.4.3', 'dsa-with-SHA1'],
  [OID.sha1, 'RSASSA-PSS with SHA-1'],
]);

/** The name of an algorithm whose signatures are not accepted, or its OID. */
export const refusedName = (dotted: string): string => REFUSED.get(dotted) ?? oidName(dotted);

/** {@link refusedName}; undefined: it is accepted. */
export function refusedAlgorithm(der: Buffer): string | undefined {
  try {
    parseSignatureAlgorithm(der);
    return undefined;
  } catch (error) {
    if (error instanceof UnsupportedSignatureAlgorithm) return refusedName(error.oid);
    if (error instanceof DerError) return undefined;
    throw error;
  }
}

/** ecdsa-with-SHA2, ANSI X9.62. */
export const ECDSA_ARC = '1.2.840.10045.4.3.';

/** RFC 4055 §3.1, with the same hash for message and mask: SHA-256, -384 or -512. */
function parsePssParameters(der: Buffer): { hash: HashName; saltLength: number } {
  const reader = DerReader.of(der, 'RSASSA-PSS-params');
  const hashAlgorithm = reader.optional(contextConstructed(0), 'hashAlgorithm');
  const maskGenAlgorithm = reader.optional(contextConstructed(1), 'maskGenAlgorithm');
  const salt = reader.optional(contextConstructed(2), 'saltLength');
  const trailer = reader.optional(contextConstructed(3), 'trailerField');
  reader.end();
  // Absent means SHA-1.
  if (hashAlgorithm === undefined || maskGenAlgorithm === undefined) throw new UnsupportedSignatureAlgorithm(OID.sha1);
  const hash = parseHash(hashAlgorithm.value);
  const mask = readAlgorithm(parseDer(maskGenAlgorithm.value), 'MaskGenAlgorithm');
  if (mask.oid !== OID.mgf1) throw new UnsupportedSignatureAlgorithm(mask.oid);
  if (mask.parameters === undefined || parseHash(mask.parameters.raw) !== hash)
    throw new DerError('RSASSA-PSS-params: mask generation uses another hash');
  const saltLength = salt === undefined ? 20 : readInteger(parseDer(salt.value, Tag.INTEGER, 'saltLength'));
  if (saltLength < 0 || saltLength > 1024) throw new DerError('RSASSA-PSS-params.saltLength: out of range');
  if (trailer !== undefined && readInteger(parseDer(trailer.value, Tag.INTEGER, 'trailerField')) !== 1)
    throw new DerError('RSASSA-PSS-params.trailerField: not 1');
  return { hash, saltLength };
}

function parseHash(der: Buffer): HashName {
  const { oid: dotted, parameters } = readAlgorithm(parseDer(der), 'HashAlgorithm');
  if (parameters?.raw.equals(NULL) === false) throw new DerError('HashAlgorithm.parameters: not NULL');
  const hash = DIGESTS.get(dotted);
  if (hash === undefined) throw new UnsupportedSignatureAlgorithm(dotted);
  return hash;
}

function plain(dotted: string, parameters: readonly Buffer[] = []): SignatureAlgorithm {
  return parseSignatureAlgorithm(sequence(oid(dotted), ...parameters));
}

function pss(hash: string, saltLength: number): SignatureAlgorithm {
  const algorithm = sequence(oid(hash), NULL);
  return parseSignatureAlgorithm(
    sequence(
      oid(OID.rsassaPss),
      sequence(
        explicit(0, algorithm),
        explicit(1, sequence(oid(OID.mgf1), algorithm)),
        explicit(2, integer(saltLength)),
      ),
    ),
  );
}

export const SIGNATURE_ALGORITHMS = {
  sha256WithRSAEncryption: plain(OID.sha256WithRSAEncryption, [NULL]),
  sha384WithRSAEncryption: plain(OID.sha384WithRSAEncryption, [NULL]),
  sha512WithRSAEncryption: plain(OID.sha512WithRSAEncryption, [NULL]),
  rsassaPssSha256: pss(OID.sha256, 32),
  rsassaPssSha384: pss(OID.sha384, 48),
  rsassaPssSha512: pss(OID.sha512, 64),
  ecdsaWithSHA256: plain(OID.ecdsaWithSHA256),
  ecdsaWithSHA384: plain(OID.ecdsaWithSHA384),
  ecdsaWithSHA512: plain(OID.ecdsaWithSHA512),
  ed25519: plain(OID.ed25519),
  ed448: plain(OID.ed448),
} as const;

/**
 * The default algorithm for a signing key: SHA-256 for RSA and P-256, SHA-384 for P-384. undefined if the key cannot
 * sign.
 */
export function defaultSignatureAlgorithm(keyType: string): SignatureAlgorithm | undefined {
  if (keyType.startsWith('rsa:')) return SIGNATURE_ALGORITHMS.sha256WithRSAEncryption;
  switch (keyType) {
    case 'ec:P-256':
      return SIGNATURE_ALGORITHMS.ecdsaWithSHA256;
    case 'ec:P-384':
      return SIGNATURE_ALGORITHMS.ecdsaWithSHA384;
    case 'ec:P-521':
      return SIGNATURE_ALGORITHMS.ecdsaWithSHA512;
    case 'ed25519':
      return SIGNATURE_ALGORITHMS.ed25519;
    case 'ed448':
      return SIGNATURE_ALGORITHMS.ed448;
    default: {
      const mlDsa = mlDsaOf(keyType);
      return mlDsa && plain(mlDsa.oid);
    }
  }
}

const KEY_ALGORITHMS: Readonly<Record<SignatureAlgorithm['scheme'], readonly KeyAlgorithm[]>> = {
  'rsa-pkcs1': ['rsa'],
  'rsa-pss': ['rsa', 'rsa-pss'],
  ecdsa: ['ec'],
  eddsa: ['ed25519', 'ed448'],
  'ml-dsa': ['ml-dsa'],
};

/** Whether keys of this type can sign with this algorithm. */
export function algorithmFitsKey(algorithm: SignatureAlgorithm, key: PublicKeyInfo): boolean {
  if (algorithm.scheme === 'eddsa') return algorithm.name.toLowerCase() === key.algorithm;
  if (algorithm.scheme === 'ml-dsa') return algorithm.oid === mlDsaOf(key.keyType)?.oid;
  return KEY_ALGORITHMS[algorithm.scheme].includes(key.algorithm);
}

function cryptoKey(algorithm: SignatureAlgorithm, key: KeyObject) {
  if (algorithm.scheme !== 'rsa-pss') return { key };
  return { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: algorithm.saltLength ?? 0 };
}

/** Maximum octets of an RSA exponent. OpenSSL applies the same bound only to keys above 3072 bits. */
const MAX_EXPONENT = 8;

/** Octets that hash in 0.1 ms; a CRL may have megabytes. */
const QUICKLY_HASHED = 65_536;

/** P-256 and Ed25519 take less than 0.2 ms for short data, less than a round trip to the thread pool. */
function isCheap(keyType: string, { length }: Buffer): boolean {
  return (keyType === 'ec:P-256' || keyType === 'ed25519') && length <= QUICKLY_HASHED;
}

/**
 * Verifies `signature` (DER for ECDSA) over `data`. Returns false if the algorithm does not fit the key, including
 * cases that only OpenSSL detects: a restricted RSASSA-PSS key (RFC 4055 §3.1) with another hash, or an SM2 key with
 * ECDSA. Also false for RSA exponents over 64 bits, since verifying an untrusted key's signature would cost 100 times
 * as much.
 * @throws DerError if the key is unusable
 */
export async function verifySignature(
  algorithm: SignatureAlgorithm,
  publicKey: PublicKeyInfo,
  data: Buffer,
  signature: Buffer,
): Promise<boolean> {
  if (!algorithmFitsKey(algorithm, publicKey) || (publicKey.rsa?.exponent.length ?? 0) > MAX_EXPONENT) return false;
  const key = cryptoKey(algorithm, publicKey.keyObject);
  if (isCheap(publicKey.keyType, data)) return verifyAtOnce(algorithm, key, data, signature);
  return new Promise((resolve) => {
    verify(algorithm.hash, data, key, signature, (error, valid) => {
      resolve(error === null && valid);
    });
  });
}

function verifyAtOnce(
  algorithm: SignatureAlgorithm,
  key: ReturnType<typeof cryptoKey>,
  data: Buffer,
  signature: Buffer,
): boolean {
  try {
    return verify(algorithm.hash, data, key, signature);
  } catch {
    return false;
  }
}

/**
 * Signs `data` in X.509's encoding. Short data with P-256 and Ed25519 is signed synchronously, the rest in the thread
 * pool.
 */
export async function createSignature(
  algorithm: SignatureAlgorithm,
  privateKey: KeyObject,
  keyType: string,
  data: Buffer,
): Promise<Buffer> {
  const key = cryptoKey(algorithm, privateKey);
  if (isCheap(keyType, data)) return sign(algorithm.hash, data, key);
  return new Promise((resolve, reject) => {
    sign(algorithm.hash, data, key, (error, signature) => {
      if (error === null) resolve(signature);
      else reject(error);
    });
  });
}
