/** Private keys of certificates, made here and kept in files. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { encodePem } from '../../pki/der/pem.ts';
import { newKeyPair } from '../../pki/x509/key-pair.ts';
import { parsePublicKey, type PublicKeyInfo } from '../../pki/x509/public-key.ts';
import { createSignature, type SignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { ClientError } from '../client-error.ts';

export interface PrivateKey {
  readonly publicKey: PublicKeyInfo;
  /** PKCS#8, PEM. */
  readonly pem: string;
  sign(algorithm: SignatureAlgorithm, data: Buffer): Promise<Buffer>;
}

/** @param keyType one of `MADE_KEY_TYPES` */
export async function makePrivateKey(keyType: string): Promise<PrivateKey> {
  const { publicKey, privateKey } = await newKeyPair(keyType);
  const pem = encodePem('PRIVATE KEY', privateKey);
  const key = createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' });
  privateKey.fill(0);
  return privateKeyOf(key, publicKey, pem);
}

/** @throws ClientError `KEY_UNUSABLE` */
export function readPrivateKey(pem: string, where: string): PrivateKey {
  try {
    const key = createPrivateKey(pem);
    return privateKeyOf(key, createPublicKey(key).export({ format: 'der', type: 'spki' }), pem);
  } catch (error) {
    throw new ClientError('local', 'KEY_UNUSABLE', `${where} holds no usable private key`, { cause: error });
  }
}

function privateKeyOf(key: KeyObject, spki: Buffer, pem: string): PrivateKey {
  const publicKey = parsePublicKey(spki);
  return {
    publicKey,
    pem,
    sign: (algorithm, data) => createSignature(algorithm, key, publicKey.keyType, data),
  };
}
