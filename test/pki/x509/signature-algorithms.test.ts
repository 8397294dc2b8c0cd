import { generateKeyPairSync } from 'node:crypto';

import { describe, expect, test } from 'vitest';

import { parsePublicKey, samePublicKey } from '../../../src/pki/x509/public-key.ts';
import { SIGNATURE_ALGORITHMS, createSignature, verifySignature } from '../../../src/pki/x509/signature-algorithms.ts';
import { KEY_KINDS, keyPair, restrictedPssKey, spkiDer, type KeyPair } from '../../support/keys.ts';

const DATA = Buffer.from('data');
const KEYS: readonly (readonly [string, KeyPair])[] = [
  ...KEY_KINDS.map((kind) => [kind, keyPair(kind)] as const),
  ['restricted RSASSA-PSS', restrictedPssKey()],
  ['SM2', generateKeyPairSync('ec', { namedCurve: 'SM2' })],
  ['secp256k1', generateKeyPairSync('ec', { namedCurve: 'secp256k1' })],
  ['Ed448', generateKeyPairSync('ed448')],
];
const ecdsa = await createSignature(
  SIGNATURE_ALGORITHMS.ecdsaWithSHA256,
  keyPair('ec:P-256', 'other').privateKey,
  'ec:P-256',
  DATA,
);
const SIGNATURES = [Buffer.alloc(0), Buffer.alloc(64, 1), Buffer.alloc(256, 1), ecdsa];

describe('issue 11.13: a signature that the key cannot have made is invalid, whatever OpenSSL has to say', () => {
  test.each(KEYS)('%s', async (_, key) => {
    for (const algorithm of Object.values(SIGNATURE_ALGORITHMS))
      for (const signature of SIGNATURES)
        expect(await verifySignature(algorithm, parsePublicKey(spkiDer(key)), DATA, signature)).toBe(false);
  });
});

describe('samePublicKey', () => {
  test('tells keys of all kinds apart, and knows one that is encoded otherwise', () => {
    for (const [one, key] of KEYS)
      for (const [other, otherKey] of KEYS)
        expect(samePublicKey(parsePublicKey(spkiDer(key)), parsePublicKey(spkiDer(otherKey)))).toBe(one === other);
  });
});
