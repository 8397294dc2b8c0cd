/** HMAC's AlgorithmIdentifiers (RFC 4231 §3.1, RFC 8018 appendix B.1). */
import type { HashName } from '../x509/signature-algorithms.ts';
import { OID } from '../der/oids.ts';

export const HMAC_OIDS: Readonly<Record<HashName, string>> = {
  sha256: OID.hmacWithSHA256,
  sha384: OID.hmacWithSHA384,
  sha512: OID.hmacWithSHA512,
};

const HASHES: ReadonlyMap<string, HashName> = new Map<string, HashName>([
  [OID.hmacWithSHA256, 'sha256'],
  [OID.hmacWithSHA384, 'sha384'],
  [OID.hmacWithSHA512, 'sha512'],
]);

/** The hash of an HMAC (dotted OID); undefined for SHA-1, MD5 and everything else. */
export function hmacHash(dotted: string): HashName | undefined {
  return HASHES.get(dotted);
}
