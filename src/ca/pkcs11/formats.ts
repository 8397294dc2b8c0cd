/** Converts public keys and signatures between PKCS#11 and X.509. ML-DSA constants are numbers: graphene lacks them. */
import { createHash } from 'node:crypto';
import type * as graphene from 'graphene-pk11';
import { bitString, integer, NULL, octetString, oid, parseDer, sequence, Tag } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { ML_DSA, type MlDsaParameters } from '../../pki/x509/key-pair.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import { defaultSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { findObjects, type Token } from './token.ts';
import { TokenFault } from './wire.ts';

/** CK_KEY_TYPE, CK_MECHANISM_TYPE and CK_ATTRIBUTE_TYPE. */
export const MlDsa = {
  CKK_ML_DSA: 0x4a,
  CKM_ML_DSA_KEY_PAIR_GEN: 0x1c,
  CKM_ML_DSA: 0x1d,
  CKA_PARAMETER_SET: 0x61d,
} as const;

/** CK_ML_DSA_PARAMETER_SET_TYPE. */
export const PARAMETER_SETS: Readonly<Record<MlDsaParameters['keyType'], number>> = {
  'ml-dsa:44': 1,
  'ml-dsa:65': 2,
  'ml-dsa:87': 3,
};

const EC_KEY = oid(OID.ecPublicKey);

/** As numbers: graphene's types lack one of the names. */
const Attribute = {
  CKA_MODULUS: 0x120,
  CKA_PUBLIC_EXPONENT: 0x122,
  CKA_EC_PARAMS: 0x180,
  CKA_EC_POINT: 0x181,
  CKA_VALUE: 0x11,
} as const;

/**
 * DER SubjectPublicKeyInfo of a private key; undefined if the token lacks the public half of an EC or ML-DSA key. The
 * halves share their CKA_ID (PKCS#11 §4.7); an RSA private key contains its public numbers.
 */
export function publicKeyOf(
  token: Token,
  session: graphene.Session,
  privateKey: graphene.SessionObject,
): Buffer | undefined {
  const { KeyType } = token.graphene;
  const keyType: unknown = privateKey.get('keyType');
  if (keyType === KeyType.RSA) return rsaPublicKey(privateKey);
  const readPublicKey =
    keyType === KeyType.EC ? ecPublicKey : keyType === MlDsa.CKK_ML_DSA ? mlDsaPublicKey : undefined;
  if (readPublicKey === undefined)
    throw new IsolatedError(TokenFault.KEY, 'the private key is neither RSA nor EC nor ML-DSA');
  const id: unknown = privateKey.get('id');
  if (!Buffer.isBuffer(id) || id.length === 0) return undefined;
  const [publicKey] = findObjects(token, session, 'PUBLIC_KEY', { key_id: id.toString('hex') });
  return publicKey === undefined ? undefined : readPublicKey(publicKey);
}

/** RFC 9881 §4: the raw key, whose length determines the parameter set. */
function mlDsaPublicKey(key: graphene.SessionObject): Buffer {
  const value = bytes(key, 'CKA_VALUE');
  const parameters = ML_DSA.find(({ publicKey }) => publicKey === value.length);
  if (parameters === undefined)
    throw new IsolatedError(TokenFault.KEY, `an ML-DSA public key cannot have ${value.length} octets`);
  return sequence(sequence(oid(parameters.oid)), bitString(value));
}

function rsaPublicKey(key: graphene.SessionObject): Buffer {
  const modulus = bytes(key, 'CKA_MODULUS');
  const exponent = bytes(key, 'CKA_PUBLIC_EXPONENT');
  const publicKey = sequence(integer(modulus), integer(exponent));
  return sequence(sequence(oid(OID.rsaEncryption), NULL), bitString(publicKey));
}

/** CKA_EC_PARAMS is DER; CKA_EC_POINT is an OCTET STRING around the point or, in some tokens, the bare point. */
function ecPublicKey(key: graphene.SessionObject): Buffer {
  const point = bytes(key, 'CKA_EC_POINT');
  return sequence(
    sequence(EC_KEY, bytes(key, 'CKA_EC_PARAMS')),
    bitString(isWrapped(point) ? parseDer(point).value : point),
  );
}

function isWrapped(point: Buffer): boolean {
  // A bare uncompressed point also starts with 04; only a wrapped one is DER to its last byte.
  try {
    return parseDer(point, Tag.OCTET_STRING).value.length > 0;
  } catch {
    return false;
  }
}

function bytes(key: graphene.SessionObject, attribute: keyof typeof Attribute): Buffer {
  const value: unknown = key.getAttribute(Attribute[attribute]);
  if (!Buffer.isBuffer(value)) throw new IsolatedError(TokenFault.KEY, `the key has no readable ${attribute}`);
  return value;
}

export interface TokenSignature {
  /** CK_MECHANISM_TYPE. */
  readonly mechanism: number;
  /** Converts the data to sign into the mechanism's input. */
  input(tbs: Buffer): Buffer;
  /** Converts the mechanism's output into an X.509 signature. */
  output(raw: Buffer): Buffer;
}

/** DigestInfo (RFC 8017 §9.2), for tokens that only pad. */
const digestInfo = (hash: string, digest: Buffer): Buffer => sequence(sequence(oid(hash), NULL), octetString(digest));

/** CK_MECHANISM_TYPE. */
export const Mechanism = {
  CKM_RSA_PKCS: 0x0001,
  CKM_SHA256_RSA_PKCS: 0x0040,
  CKM_ECDSA: 0x1041,
  CKM_ML_DSA: MlDsa.CKM_ML_DSA,
} as const;

/**
 * How to create a key's default signature with the token's mechanisms.
 * @param offered the token's mechanisms
 * @throws IsolatedError if no mechanism is suitable
 */
export function tokenSignature(spki: Buffer, offered: ReadonlySet<number>): TokenSignature {
  const { CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS, CKM_ECDSA, CKM_ML_DSA } = Mechanism;
  const { keyType } = parsePublicKey(spki);
  const algorithm = defaultSignatureAlgorithm(keyType);
  if (algorithm?.scheme === 'ecdsa' && algorithm.hash !== undefined && offered.has(CKM_ECDSA)) {
    const { hash } = algorithm;
    const input = (tbs: Buffer): Buffer => createHash(hash).update(tbs).digest();
    return { mechanism: CKM_ECDSA, input, output: ecdsaSigValue };
  }
  if (algorithm?.scheme === 'rsa-pkcs1') {
    const output = (raw: Buffer): Buffer => raw;
    if (offered.has(CKM_SHA256_RSA_PKCS)) return { mechanism: CKM_SHA256_RSA_PKCS, input: (tbs) => tbs, output };
    const input = (tbs: Buffer): Buffer => digestInfo(OID.sha256, createHash('sha256').update(tbs).digest());
    if (offered.has(CKM_RSA_PKCS)) return { mechanism: CKM_RSA_PKCS, input, output };
  }
  // Pure ML-DSA without a context needs no mechanism parameters (PKCS#11 3.2 §6.67).
  if (algorithm?.scheme === 'ml-dsa' && offered.has(CKM_ML_DSA))
    return { mechanism: CKM_ML_DSA, input: (tbs) => tbs, output: (raw) => raw };
  throw new IsolatedError(TokenFault.KEY, `the token has no signature mechanism for a ${keyType} key`);
}

/** PKCS#11 returns r and s concatenated, each with the order's length; RFC 3279 §2.2.3 requires Ecdsa-Sig-Value. */
export function ecdsaSigValue(raw: Buffer): Buffer {
  if (raw.length === 0 || raw.length % 2 !== 0) throw new RangeError('not an r and an s of the same length');
  const half = raw.length / 2;
  return sequence(integer(raw.subarray(0, half)), integer(raw.subarray(half)));
}
