/** How a token's key signs, and what its raw signature looks like in X.509. */
import { createHash } from 'node:crypto';
import { IsolatedError } from '../../process/protocol.ts';
import { integer, NULL, octetString, oid, sequence } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import { defaultSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { MlDsa } from './ml-dsa.ts';
import { TokenFault } from './wire.ts';

export interface TokenSignature {
  /** CK_MECHANISM_TYPE */
  readonly mechanism: number;
  /** What the mechanism takes, from what is to be signed. */
  input(tbs: Buffer): Buffer;
  /** The signature as X.509 carries it, from what the mechanism gives. */
  output(raw: Buffer): Buffer;
}

/** RFC 8017 §9.2: DigestInfo, for tokens that only pad. */
const digestInfo = (hash: string, digest: Buffer): Buffer => sequence(sequence(oid(hash), NULL), octetString(digest));

/** CK_MECHANISM_TYPE */
export const Mechanism = {
  CKM_RSA_PKCS: 0x0001,
  CKM_SHA256_RSA_PKCS: 0x0040,
  CKM_ECDSA: 0x1041,
  CKM_ML_DSA: MlDsa.CKM_ML_DSA,
} as const;

/**
 * The way to make a key's usual signature with what the token offers.
 *
 * @param offered the mechanisms of the token
 * @throws IsolatedError when there is none
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
  // Pure ML-DSA without a context, which the parameters of the mechanism are not needed for (PKCS#11 3.2 §6.67).
  if (algorithm?.scheme === 'ml-dsa' && offered.has(CKM_ML_DSA))
    return { mechanism: CKM_ML_DSA, input: (tbs) => tbs, output: (raw) => raw };
  throw new IsolatedError(TokenFault.KEY, `the token has no signature mechanism for a ${keyType} key`);
}

/** PKCS#11 gives r and s one after the other, both of the order's length; RFC 3279 §2.2.3 wants Ecdsa-Sig-Value. */
export function ecdsaSigValue(raw: Buffer): Buffer {
  if (raw.length === 0 || raw.length % 2 !== 0) throw new RangeError('not an r and an s of the same length');
  const half = raw.length / 2;
  return sequence(integer(raw.subarray(0, half)), integer(raw.subarray(half)));
}
