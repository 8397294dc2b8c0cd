/** Converts public keys and signatures between PKCS#11 and X.509. */
import { createHash, ECDH } from 'node:crypto';
import { bitString, integer, NULL, octetString, oid, parseDer, sequence, Tag } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { ML_DSA, type MlDsaParameters } from '../../pki/x509/key-pair.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import { defaultSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { TokenFault } from './wire.ts';

/** CK_ML_DSA_PARAMETER_SET_TYPE. */
export const PARAMETER_SETS: Readonly<Record<MlDsaParameters['keyType'], number>> = {
  'ml-dsa:44': 1,
  'ml-dsa:65': 2,
  'ml-dsa:87': 3,
};

/** DER SubjectPublicKeyInfo. RFC 9881 §4: the raw key, whose length determines the parameter set. */
export function mlDsaPublicKey(value: Buffer): Buffer | undefined {
  const parameters = ML_DSA.find(({ publicKey }) => publicKey === value.length);
  return parameters && sequence(sequence(oid(parameters.oid)), bitString(value));
}

/** DER SubjectPublicKeyInfo; both are big-endian, and some tokens add zero octets in front. */
export function rsaPublicKey(modulus: Buffer, exponent: Buffer): Buffer {
  const publicKey = sequence(integer(modulus), integer(exponent));
  return sequence(sequence(oid(OID.rsaEncryption), NULL), bitString(publicKey));
}

/** By the octets of a coordinate. */
const CURVES = [
  { size: 32, curve: OID.secp256r1, name: 'prime256v1' },
  { size: 48, curve: OID.secp384r1, name: 'secp384r1' },
] as const;

/**
 * DER SubjectPublicKeyInfo of CKA_EC_POINT; undefined if it is not a point of P-256 or P-384. It should be an OCTET
 * STRING around the point. Some tokens return the bare point, which may look like one, or a BIT STRING, or a compressed
 * point. The length determines the curve, because CKA_EC_PARAMS has even more forms; a signature proves both.
 */
export function ecPublicKey(value: Buffer): Buffer | undefined {
  for (const point of [unwrapped(value, Tag.OCTET_STRING), unwrapped(value, Tag.BIT_STRING)?.subarray(1), value]) {
    const first = point?.[0] ?? 0;
    const form = CURVES.find(({ size }) => point?.length === 1 + (first === 4 || first >= 6 ? 2 * size : size));
    if (point === undefined || form === undefined || ![2, 3, 4, 6, 7].includes(first)) continue;
    try {
      const uncompressed = ECDH.convertKey(point, form.name, undefined, undefined, 'uncompressed');
      if (Buffer.isBuffer(uncompressed))
        return sequence(sequence(oid(OID.ecPublicKey), oid(form.curve)), bitString(uncompressed));
    } catch {
      // Not on the curve.
    }
  }
  return undefined;
}

function unwrapped(value: Buffer, tag: number): Buffer | undefined {
  try {
    return parseDer(value, tag).value;
  } catch {
    return undefined;
  }
}

/** One way to create a key's default signature. */
export interface TokenSignature {
  /** CK_MECHANISM_TYPE. */
  readonly mechanism: number;
  /** Converts the data to sign into the mechanism's input. */
  input(tbs: Buffer): Buffer;
  /** Converts the mechanism's output into an X.509 signature. */
  output(raw: Buffer): Buffer;
}

/** DigestInfo (RFC 8017 §9.2), for tokens that only pad. */
const digestInfo = (tbs: Buffer): Buffer =>
  sequence(sequence(oid(OID.sha256), NULL), octetString(createHash('sha256').update(tbs).digest()));

/** EMSA-PKCS1-v1_5 (RFC 8017 §9.2), for tokens that do not even pad. @param size octets of the modulus */
function paddedDigest(tbs: Buffer, size: number): Buffer {
  const info = digestInfo(tbs);
  return Buffer.concat([Buffer.from([0, 1]), Buffer.alloc(size - info.length - 3, 0xff), Buffer.alloc(1), info]);
}

/** CK_MECHANISM_TYPE. */
export const Mechanism = {
  CKM_RSA_PKCS: 0x0001,
  CKM_RSA_X_509: 0x0003,
  CKM_SHA256_RSA_PKCS: 0x0040,
  CKM_ECDSA: 0x1041,
  CKM_ECDSA_SHA256: 0x1044,
  CKM_ECDSA_SHA384: 0x1045,
  CKM_ML_DSA: 0x1d,
} as const;

const unchanged = (octets: Buffer): Buffer => octets;

/**
 * The ways to create a key's default signature, best first.
 * @param offered the token's mechanisms; undefined: unknown
 * @throws IsolatedError if no mechanism is suitable
 */
export function tokenSignatures(spki: Buffer, offered: ReadonlySet<number> | undefined): readonly TokenSignature[] {
  const { keyType } = parsePublicKey(spki);
  const ways = allSignatures(keyType).filter(({ mechanism }) => offered?.has(mechanism) ?? true);
  if (ways.length === 0)
    throw new IsolatedError(TokenFault.KEY, `the token has no signature mechanism for a ${keyType} key`);
  return ways;
}

function allSignatures(keyType: string): readonly TokenSignature[] {
  const { CKM_RSA_PKCS, CKM_RSA_X_509, CKM_SHA256_RSA_PKCS, CKM_ML_DSA } = Mechanism;
  const { CKM_ECDSA, CKM_ECDSA_SHA256, CKM_ECDSA_SHA384 } = Mechanism;
  const algorithm = defaultSignatureAlgorithm(keyType);
  switch (algorithm?.scheme) {
    case 'ecdsa': {
      const { hash } = algorithm;
      if (hash !== 'sha256' && hash !== 'sha384') return [];
      const input = (tbs: Buffer): Buffer => createHash(hash).update(tbs).digest();
      return [
        { mechanism: CKM_ECDSA, input, output: ecdsaSigValue },
        {
          mechanism: hash === 'sha256' ? CKM_ECDSA_SHA256 : CKM_ECDSA_SHA384,
          input: unchanged,
          output: ecdsaSigValue,
        },
      ];
    }
    case 'rsa-pkcs1': {
      const size = Math.ceil(Number(keyType.slice('rsa:'.length)) / 8);
      return [
        { mechanism: CKM_SHA256_RSA_PKCS, input: unchanged, output: unchanged },
        { mechanism: CKM_RSA_PKCS, input: digestInfo, output: unchanged },
        { mechanism: CKM_RSA_X_509, input: (tbs) => paddedDigest(tbs, size), output: unchanged },
      ];
    }
    // Pure ML-DSA without a context needs no mechanism parameters (PKCS#11 3.2 §6.67).
    case 'ml-dsa':
      return [{ mechanism: CKM_ML_DSA, input: unchanged, output: unchanged }];
    default:
      return [];
  }
}

/**
 * PKCS#11 returns r and s concatenated, each with the order's length; RFC 3279 §2.2.3 requires Ecdsa-Sig-Value, which
 * some tokens return already.
 */
export function ecdsaSigValue(raw: Buffer): Buffer {
  // 64 or 96 octets could be DER only with an r or s that is shorter than its order by many octets.
  if (raw.length !== 64 && raw.length !== 96 && unwrapped(raw, Tag.SEQUENCE) !== undefined) return raw;
  if (raw.length === 0 || raw.length % 2 !== 0) throw new RangeError('not an r and an s of the same length');
  const half = raw.length / 2;
  return sequence(integer(raw.subarray(0, half)), integer(raw.subarray(half)));
}
