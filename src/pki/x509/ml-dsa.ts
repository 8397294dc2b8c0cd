/** The parameter sets of ML-DSA (FIPS 204, RFC 9881 §2 and §4), in one table. */
import { OID } from '../der/oids.ts';

export interface MlDsaParameters {
  /** As in the configuration's `key_types`. */
  readonly keyType: 'ml-dsa:44' | 'ml-dsa:65' | 'ml-dsa:87';
  /** Dotted; names the key and the signature alike. */
  readonly oid: string;
  /** The standard's name of the parameter set, and of its signature algorithm. */
  readonly name: 'ML-DSA-44' | 'ML-DSA-65' | 'ML-DSA-87';
  /** What node:crypto calls it. */
  readonly nodeType: 'ml-dsa-44' | 'ml-dsa-65' | 'ml-dsa-87';
  /** Octets of a public key. */
  readonly publicKey: number;
}

export const ML_DSA: readonly MlDsaParameters[] = [
  { keyType: 'ml-dsa:44', oid: OID['id-ml-dsa-44'], name: 'ML-DSA-44', nodeType: 'ml-dsa-44', publicKey: 1312 },
  { keyType: 'ml-dsa:65', oid: OID['id-ml-dsa-65'], name: 'ML-DSA-65', nodeType: 'ml-dsa-65', publicKey: 1952 },
  { keyType: 'ml-dsa:87', oid: OID['id-ml-dsa-87'], name: 'ML-DSA-87', nodeType: 'ml-dsa-87', publicKey: 2592 },
];

/** The parameter set of a key type, or undefined for any other. */
export function mlDsaOf(keyType: string): MlDsaParameters | undefined {
  return ML_DSA.find((parameters) => parameters.keyType === keyType);
}
