import 'reflect-metadata';

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
