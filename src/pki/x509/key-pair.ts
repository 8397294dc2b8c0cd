/** Generates key pairs in the thread pool. */
import { generateKeyPair } from 'node:crypto';
import { OID } from '../der/oids.ts';
import { InputError } from '../input-error.ts';

/** The parameter sets of ML-DSA (FIPS 204, RFC 9881 §2, §4). */
export interface MlDsaParameters {
  readonly keyType: 'ml-dsa:44' | 'ml-dsa:65' | 'ml-dsa:87';
  /** Dotted OID of both the key and the signature. */
  readonly oid: string;
  /** Standard name of the parameter set and of its signature algorithm. */
  readonly name: 'ML-DSA-44' | 'ML-DSA-65' | 'ML-DSA-87';
  /** Name in node:crypto. */
  readonly nodeType: 'ml-dsa-44' | 'ml-dsa-65' | 'ml-dsa-87';
  /** Octets of a public key. */
  readonly publicKey: number;
}

export const ML_DSA: readonly MlDsaParameters[] = [
  { keyType: 'ml-dsa:44', oid: OID['id-ml-dsa-44'], name: 'ML-DSA-44', nodeType: 'ml-dsa-44', publicKey: 1312 },
  { keyType: 'ml-dsa:65', oid: OID['id-ml-dsa-65'], name: 'ML-DSA-65', nodeType: 'ml-dsa-65', publicKey: 1952 },
  { keyType: 'ml-dsa:87', oid: OID['id-ml-dsa-87'], name: 'ML-DSA-87', nodeType: 'ml-dsa-87', publicKey: 2592 },
];

export function mlDsaOf(keyType: string): MlDsaParameters | undefined {
  return ML_DSA.find((parameters) => parameters.keyType === keyType);
}

/** The key types that Estuary generates. One attribute gives the algorithm and the size of each (RFC 9908 §3.2). */
export const GENERATED_KEY_TYPES = [
  'ec:P-256',
  'ec:P-384',
  'ec:P-521',
  'rsa:2048',
  'rsa:3072',
  'rsa:4096',
  'ed25519',
  'ed448',
  'ml-dsa:44',
  'ml-dsa:65',
  'ml-dsa:87',
] as const;

/** DER SubjectPublicKeyInfo and DER PrivateKeyInfo (for ML-DSA with the seed only, RFC 9881 §6). */
interface FreshKeyPair {
  readonly publicKey: Buffer;
  /** The caller zeroes it. */
  readonly privateKey: Buffer;
}

const RSA = /^rsa:(\d+)$/;
const EC = /^ec:(.+)$/;

/** Whether {@link newKeyPair} supports this key type. */
export function canGenerateKey(keyType: string): boolean {
  return GENERATED_KEY_TYPES.some((made) => made === keyType);
}

const ENCODING = {
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'der' },
} as const;

/** @throws InputError for an unsupported key type */
export function newKeyPair(keyType: string): Promise<FreshKeyPair> {
  return new Promise((resolve, reject) => {
    if (!canGenerateKey(keyType)) throw new InputError(`Estuary does not create keys of the type ${keyType}`);
    const done = (error: Error | null, publicKey: Buffer, privateKey: Buffer): void => {
      if (error === null) resolve({ publicKey, privateKey });
      else reject(error);
    };
    const bits = RSA.exec(keyType)?.[1];
    const namedCurve = EC.exec(keyType)?.[1];
    const mlDsa = mlDsaOf(keyType);
    if (bits !== undefined) generateKeyPair('rsa', { modulusLength: Number(bits), ...ENCODING }, done);
    else if (namedCurve !== undefined) generateKeyPair('ec', { namedCurve, ...ENCODING }, done);
    else if (mlDsa !== undefined) generateKeyPair(mlDsa.nodeType, ENCODING, done);
    else if (keyType === 'ed448') generateKeyPair('ed448', ENCODING, done);
    else generateKeyPair('ed25519', ENCODING, done);
  });
}
