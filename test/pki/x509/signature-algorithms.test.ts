import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';

import { describe, expect, test } from 'vitest';

import { NULL, oid, sequence } from '../../../src/pki/der/der.ts';
import { parsePublicKey, samePublicKey } from '../../../src/pki/x509/public-key.ts';
import {
  SIGNATURE_ALGORITHMS,
  createSignature,
  parseSignatureAlgorithm,
  verifySignature,
} from '../../../src/pki/x509/signature-algorithms.ts';
import { KEY_KINDS, keyPair, restrictedPssKey, spkiDer, type KeyPair } from '../../support/keys.ts';

const ALL = Object.entries(SIGNATURE_ALGORITHMS).filter(([, { scheme }]) => scheme !== 'rsa-pss');
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

describe('a signature that the key cannot have made is invalid, whatever OpenSSL has to say', () => {
  test.each(KEYS)('%s', async (_, key) => {
    for (const algorithm of Object.values(SIGNATURE_ALGORITHMS))
      for (const signature of SIGNATURES)
        expect(await verifySignature(algorithm, parsePublicKey(spkiDer(key)), DATA, signature)).toBe(false);
  });
});

test('NULL parameters are tolerated, except with ML-DSA, which nobody has written with them', () => {
  const withNull = ([, { oid: dotted, scheme }]: (typeof ALL)[number]): boolean => {
    const der = sequence(oid(dotted), NULL);
    if (scheme === 'ml-dsa') expect(() => parseSignatureAlgorithm(der)).toThrow('parameters: unexpected');
    else expect(parseSignatureAlgorithm(der)).toMatchObject({ oid: dotted, scheme });
    return scheme !== 'ml-dsa';
  };
  expect(ALL.filter(withNull).map(([name]) => name)).toEqual(expect.arrayContaining(['ecdsaWithSHA512', 'ed25519']));
});

describe('the exponent of an RSA key bounds what its signature costs', () => {
  /** The key with another exponent; a holder of the primes can sign with it. */
  function withExponent(e: bigint): KeyPair {
    const jwk = keyPair('rsa:2048').privateKey.export({ format: 'jwk' });
    const number = (name: 'n' | 'p' | 'q'): bigint =>
      BigInt(`0x${Buffer.from(jwk[name] ?? '', 'base64url').toString('hex')}`);
    const [p, q] = [number('p'), number('q')];
    const d = inverse(e, (p - 1n) * (q - 1n));
    const base64 = (value: bigint): string => {
      const hex = value.toString(16);
      return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').toString('base64url');
    };
    const changed = { ...jwk, e: base64(e), d: base64(d), dp: base64(d % (p - 1n)), dq: base64(d % (q - 1n)) };
    const privateKey = createPrivateKey({ key: changed, format: 'jwk' });
    return { privateKey, publicKey: createPublicKey(privateKey) };
  }

  function inverse(a: bigint, modulus: bigint): bigint {
    let [r, next, s, nextS] = [modulus, a % modulus, 0n, 1n];
    while (next > 0n) {
      const quotient = r / next;
      [r, next] = [next, r - quotient * next];
      [s, nextS] = [nextS, s - quotient * nextS];
    }
    if (r !== 1n) throw new RangeError('not invertible');
    return ((s % modulus) + modulus) % modulus;
  }

  test.each<[string, bigint, boolean]>([
    ['64 bits', 18446744073709551557n, true],
    ['127 bits', 170141183460469231731687303715884105727n, false],
  ])('%s', async (_, exponent, accepted) => {
    const pair = withExponent(exponent);
    for (const name of ['sha256WithRSAEncryption', 'rsassaPssSha256'] as const) {
      const algorithm = SIGNATURE_ALGORITHMS[name];
      const signature = await createSignature(algorithm, pair.privateKey, 'rsa:2048', DATA);
      expect(await verifySignature(algorithm, parsePublicKey(spkiDer(pair)), DATA, signature)).toBe(accepted);
    }
  });
});

describe('samePublicKey', () => {
  test('tells keys of all kinds apart, and knows one that is encoded otherwise', () => {
    for (const [one, key] of KEYS)
      for (const [other, otherKey] of KEYS)
        expect(samePublicKey(parsePublicKey(spkiDer(key)), parsePublicKey(spkiDer(otherKey)))).toBe(one === other);
  });
});

describe.each(['ec:P-256', 'ed25519'] as const)('what is signed with %s does not hold up the event loop', (kind) => {
  const algorithm = kind === 'ed25519' ? SIGNATURE_ALGORITHMS.ed25519 : SIGNATURE_ALGORITHMS.ecdsaWithSHA256;
  const pair = keyPair(kind);

  test.each([
    ['a certificate: at once, which takes less than the way to the thread pool', 2_000, 'at once'],
    ['a CRL of a hundred thousand entries: in the thread pool', 4_000_000, 'in the thread pool'],
  ] as const)('%s', async (_, length, expected) => {
    const data = Buffer.alloc(length, 1);
    const where = async <T>(work: Promise<T>): Promise<[T, typeof expected]> => {
      let place: typeof expected = 'in the thread pool';
      void work.then(() => (place = 'at once'));
      // Within microtasks, nothing arrives that a thread has finished.
      for (let n = 0; n < 50; n++) await Promise.resolve();
      const seen = place;
      return [await work, seen];
    };
    const [signature, signed] = await where(createSignature(algorithm, pair.privateKey, kind, data));
    const [valid, verified] = await where(verifySignature(algorithm, parsePublicKey(spkiDer(pair)), data, signature));
    expect([signed, verified, valid]).toEqual([expected, expected, true]);
  });
});
