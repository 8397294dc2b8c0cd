import { generateKeyPairSync } from 'node:crypto';

import * as x509 from '@peculiar/x509';
import { describe, expect, test } from 'vitest';

import { bitString, oid, sequence } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parsePublicKey, publicKeyProblem, subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';
import { KEY_KINDS, keyPair, spkiDer } from '../../support/keys.ts';

const ed25519 = (point: Buffer): Buffer => sequence(sequence(oid(OID.ed25519)), bitString(point));

describe('SubjectPublicKeyInfo', () => {
  test.each(KEY_KINDS)('%s: kind, key and identifier', async (kind) => {
    const spki = spkiDer(keyPair(kind));
    const key = parsePublicKey(spki);
    expect(key.keyType).toBe(kind);
    expect(publicKeyProblem(key)).toBeUndefined();
    expect(key.keyObject.equals(keyPair(kind).publicKey)).toBe(true);
    expect(key.keyObject).toBe(key.keyObject);
    // RFC 5280 §4.2.1.2 method 1
    const identifier = await new x509.PublicKey(spki).getKeyIdentifier();
    expect(subjectKeyIdentifier(spki)).toEqual(Buffer.from(identifier));
  });
});

describe('RFC 8032: an Ed25519 key of small order is weak', () => {
  const P = 2n ** 255n - 19n;
  const mod = (n: bigint): bigint => ((n % P) + P) % P;
  const power = (base: bigint, exponent: bigint): bigint => {
    let result = 1n;
    for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = mod(b * b)) if (e & 1n) result = mod(result * b);
    return result;
  };
  const inverse = (n: bigint): bigint => power(n, P - 2n);
  const D = mod(-121665n * inverse(121666n));
  /** y of 2·(x, y), from x² = (y² − 1) / (d·y² + 1); RFC 8032 §5.1.4. */
  const doubledY = (y: bigint): bigint => {
    const y2 = mod(y * y);
    const x2 = mod((y2 - 1n) * inverse(D * y2 + 1n));
    return mod((y2 + x2) * inverse(1n - D * x2 * y2));
  };
  const little = (y: bigint): Buffer => Buffer.from(y.toString(16).padStart(64, '0'), 'hex').reverse();
  const order8 = BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826');

  test('the eight points and their unreduced forms, with either sign', () => {
    const ys = [0n, 1n, P - 1n, order8, P - order8, P, P + 1n];
    for (const y of ys) {
      // three doublings lead to the neutral element, whose y is 1
      expect(doubledY(doubledY(doubledY(y)))).toBe(1n);
      for (const sign of [0, 0x80]) {
        const point = little(y);
        point.writeUInt8(point.readUInt8(31) | sign, 31);
        expect(publicKeyProblem(parsePublicKey(ed25519(point)))).toMatchObject({ kind: 'weak' });
      }
    }
  });
});

describe('RFC 8032: an Ed448 key of small order is weak', () => {
  const P = 2n ** 448n - 2n ** 224n - 1n;
  const little = (y: bigint): Buffer => Buffer.from(y.toString(16).padStart(114, '0'), 'hex').reverse();
  const ed448 = (point: Buffer): Buffer => sequence(sequence(oid(OID.ed448)), bitString(point));

  // The cofactor is 4: the points are (0, ±1) and (±1, 0) on x² + y² = 1 + d·x²·y².
  test('the four points and their unreduced forms, with either sign', () => {
    for (const y of [0n, 1n, P - 1n, P, P + 1n])
      for (const sign of [0, 0x80]) {
        const point = little(y);
        point.writeUInt8(point.readUInt8(56) | sign, 56);
        expect(publicKeyProblem(parsePublicKey(ed448(point)))).toMatchObject({ kind: 'weak' });
      }
  });

  test('a key of no small order is not', () => {
    const spki = generateKeyPairSync('ed448').publicKey.export({ format: 'der', type: 'spki' });
    expect(publicKeyProblem(parsePublicKey(spki))).toBeUndefined();
  });
});

describe('keys that are not certified are refused by name, with what is possible', () => {
  const key = (algorithm: string): Buffer => sequence(sequence(oid(algorithm)), bitString(Buffer.alloc(32, 1)));
  const onCurve = (curve: string): Buffer =>
    sequence(sequence(oid(OID.ecPublicKey), oid(curve)), bitString(Buffer.alloc(65, 4)));

  test.each([
    ['ML-KEM-512', key('2.16.840.1.101.3.4.4.1'), 'is an ML-KEM-512 key, which cannot sign a request; use '],
    ['ML-KEM-768', key('2.16.840.1.101.3.4.4.2'), 'is an ML-KEM-768 key, which cannot sign a request; use '],
    ['ML-KEM-1024', key('2.16.840.1.101.3.4.4.3'), 'is an ML-KEM-1024 key, which cannot sign a request; use '],
    ['X25519', key(OID.x25519), 'is an X25519 key, which cannot sign a request; use '],
    ['DSA', key('1.2.840.10040.4.1'), 'is a DSA key, which is not supported; use '],
    ['GOST', key('1.2.643.7.1.1.1.1'), 'is a GOST R 34.10-2012 key, which is not supported; use '],
    ['an algorithm that nobody knows', key('1.2.3.4'), 'is of the type 1.2.3.4, which is not supported; use '],
    ['SM2', onCurve('1.2.156.10197.1.301'), 'is on the curve SM2, which is not supported; use '],
    ['brainpool', onCurve('1.3.36.3.3.2.8.1.1.7'), 'is on the curve brainpoolP256r1, which is not supported; use '],
    ['secp256k1', onCurve('1.3.132.0.10'), 'is on the curve secp256k1, which is not supported; use '],
    ['another curve', onCurve('1.2.3.4'), 'is on the curve 1.2.3.4, which is not supported; use '],
  ])('%s', (_, spki, reason) => {
    const problem = publicKeyProblem(parsePublicKey(spki));
    expect(problem).toMatchObject({ kind: 'unsupported' });
    expect(problem?.reason.startsWith(reason)).toBe(true);
    expect(problem?.reason).toContain('ML-DSA');
  });

  test.each([
    [1024, 'weak'],
    [2048, undefined],
  ])('an RSASSA-PSS key of %i bits', (modulusLength, kind) => {
    const spki = generateKeyPairSync('rsa-pss', { modulusLength }).publicKey.export({ format: 'der', type: 'spki' });
    expect(parsePublicKey(spki).keyType).toBe(`rsa-pss:${modulusLength}`);
    expect(publicKeyProblem(parsePublicKey(spki))?.kind).toBe(kind);
  });
});
