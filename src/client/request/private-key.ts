/** Private keys of certificates, made here and kept in files, or made and kept in a token. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { encodePem } from '../../pki/der/pem.ts';
import { newKeyPair } from '../../pki/x509/key-pair.ts';
import { parsePublicKey, type PublicKeyInfo } from '../../pki/x509/public-key.ts';
import { createSignature, type SignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { ClientError } from '../client-error.ts';
import { idOfKeyUri, isKeyUri, keyUri } from '../token/key-uri.ts';
import type { TokenKeys } from '../token/token.ts';

export interface PrivateKey {
  readonly publicKey: PublicKeyInfo;
  /** PKCS#8, PEM; or the URI of a key in a token. */
  readonly text: string;
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

/** @param label of the token. @throws ClientError `KEY_UNUSABLE` */
export async function makeTokenKey(
  keys: TokenKeys,
  label: string,
  keyType: string,
  id: string,
  name: string,
): Promise<PrivateKey> {
  await keys.generate(keyType, id, name);
  return tokenKey(keys, keyUri(label, id), id);
}

/** @param text of a file: PEM, or a URI. @param keys of the token, where one is configured. @throws ClientError `KEY_UNUSABLE` */
export async function openPrivateKey(text: string, where: string, keys: TokenKeys | undefined): Promise<PrivateKey> {
  if (!isKeyUri(text)) return readPrivateKey(text, where);
  const id = idOfKeyUri(text);
  if (keys === undefined || id === undefined)
    throw new ClientError(
      'local',
      'KEY_UNUSABLE',
      `${where} names a key in a token, and ${id === undefined ? 'no id' : 'no token is configured ([token])'}`,
    );
  return tokenKey(keys, text.trim(), id);
}

async function tokenKey(keys: TokenKeys, text: string, id: string): Promise<PrivateKey> {
  const publicKey = parsePublicKey(await keys.publicKey(id));
  return { publicKey, text, sign: (algorithm, data) => keys.sign(id, algorithm, data) };
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
    text: pem,
    sign: (algorithm, data) => createSignature(algorithm, key, publicKey.keyType, data),
  };
}
