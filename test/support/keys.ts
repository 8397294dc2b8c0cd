/** Key pairs of every kind, made once per test process. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const makers = {
  'rsa:2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'rsa:3072': () => generateKeyPairSync('rsa', { modulusLength: 3072 }),
  'ec:P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'ec:P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'ec:P-521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  ed25519: () => generateKeyPairSync('ed25519'),
} as const;

export type KeyKind = keyof typeof makers;
export const KEY_KINDS = Object.keys(makers) as readonly KeyKind[];

const made = new Map<string, KeyPair>();

/** The pair of this kind; another `slot` gives another pair. */
export function keyPair(kind: KeyKind, slot = ''): KeyPair {
  const id = `${kind}/${slot}`;
  const pair = made.get(id) ?? makers[kind]();
  made.set(id, pair);
  return pair;
}

export const pkcs8Pem = (pair: KeyPair): string => pair.privateKey.export({ format: 'pem', type: 'pkcs8' });
export const spkiDer = (pair: KeyPair): Buffer => pair.publicKey.export({ format: 'der', type: 'spki' });

/** An RSASSA-PSS key that may sign with SHA-256 alone (RFC 4055 §3.1). */
export function restrictedPssKey(): KeyPair {
  return generateKeyPairSync('rsa-pss', { modulusLength: 2048, hashAlgorithm: 'sha256', mgf1HashAlgorithm: 'sha256' });
}
