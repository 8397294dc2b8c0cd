/** Names of common key types that Estuary does not certify, for helpful error messages. */

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

const CURVES: ReadonlyMap<string, string> = new Map([
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
export function unsupportedKey(algorithm: string): string {
  const agreement = KEY_AGREEMENT.get(algorithm);
  if (agreement !== undefined) return `is ${agreement}, which cannot sign a request; use ${POSSIBLE}`;
  return `is ${SIGNING.get(algorithm) ?? `of the type ${algorithm}`}, which is not supported; use ${POSSIBLE}`;
}

/** Why an EC key on this curve (dotted OID) is not certified; continues "the public key …". */
export function unsupportedCurve(curve: string): string {
  return `is on the curve ${CURVES.get(curve) ?? curve}, which is not supported; use ${POSSIBLE}`;
}
