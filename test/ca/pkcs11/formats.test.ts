import { constants, createECDH, ECDH, privateEncrypt, sign, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  ecdsaSigValue,
  ecPublicKey,
  Mechanism,
  tokenSignatures,
  type TokenSignature,
} from '../../../src/ca/pkcs11/formats.ts';
import { keyPair, spkiDer } from '../../support/keys.ts';

const TBS = Buffer.from('to be signed');
const { CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS, CKM_ECDSA, CKM_ECDSA_SHA384 } = Mechanism;

/** The best way. */
function tokenSignature(spki: Buffer, offered: ReadonlySet<number>): TokenSignature {
  const [how] = tokenSignatures(spki, offered);
  if (how === undefined) throw new TypeError('no way to sign');
  return how;
}

describe('how a token signs', () => {
  test('RFC 8017 §9.2: a token that only pads gets the DigestInfo', () => {
    const { privateKey, publicKey } = keyPair('rsa:2048');
    const how = tokenSignature(spkiDer(keyPair('rsa:2048')), new Set([CKM_RSA_PKCS]));
    expect(how.mechanism).toBe(CKM_RSA_PKCS);
    // CKM_RSA_PKCS with a private key is what OpenSSL calls private encryption with PKCS #1 padding.
    const raw = privateEncrypt({ key: privateKey, padding: constants.RSA_PKCS1_PADDING }, how.input(TBS));
    expect(verify('sha256', TBS, publicKey, how.output(raw))).toBe(true);
    expect(how.output(raw)).toEqual(sign('sha256', TBS, privateKey));
  });

  test('a token that hashes as well gets the bytes themselves', () => {
    const how = tokenSignature(spkiDer(keyPair('rsa:2048')), new Set([CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS]));
    expect(how.mechanism).toBe(CKM_SHA256_RSA_PKCS);
    expect(how.input(TBS)).toEqual(TBS);
  });

  test.each(['ec:P-256', 'ec:P-384'] as const)('RFC 3279 §2.2.3: r and s of %s become an Ecdsa-Sig-Value', (kind) => {
    const { privateKey, publicKey } = keyPair(kind);
    const hash = kind === 'ec:P-256' ? 'sha256' : 'sha384';
    const how = tokenSignature(spkiDer(keyPair(kind)), new Set([CKM_ECDSA]));
    // Often enough for an r or an s with a leading zero octet, or with its highest bit set.
    for (let i = 0; i < 300; i += 1) {
      const raw = sign(hash, TBS, { key: privateKey, dsaEncoding: 'ieee-p1363' });
      expect(verify(hash, TBS, publicKey, how.output(raw))).toBe(true);
    }
  });

  test('an Ecdsa-Sig-Value that a token returns already is kept', () => {
    const { privateKey, publicKey } = keyPair('ec:P-256');
    const how = tokenSignature(spkiDer(keyPair('ec:P-256')), new Set([CKM_ECDSA]));
    for (let i = 0; i < 100; i += 1)
      expect(verify('sha256', TBS, publicKey, how.output(sign('sha256', TBS, privateKey)))).toBe(true);
  });

  test('the ways are in order, without those that the token does not list, and all if it lists none', () => {
    const ways = (spki: Buffer, offered?: number[]): number[] =>
      tokenSignatures(spki, offered && new Set(offered)).map(({ mechanism }) => mechanism);
    expect(ways(spkiDer(keyPair('ec:P-384')), [CKM_ECDSA_SHA384])).toEqual([CKM_ECDSA_SHA384]);
    expect(ways(spkiDer(keyPair('ec:P-384')))).toEqual([CKM_ECDSA, CKM_ECDSA_SHA384]);
    expect(ways(spkiDer(keyPair('rsa:2048')))).toEqual([CKM_SHA256_RSA_PKCS, CKM_RSA_PKCS, Mechanism.CKM_RSA_X_509]);
  });

  test.each([0, 1, 63])('a raw ECDSA signature of %i octets is rejected', (length) => {
    expect(() => ecdsaSigValue(Buffer.alloc(length))).toThrow(RangeError);
  });

  test.each([
    ['ec:P-256', [CKM_RSA_PKCS]],
    ['rsa:2048', [CKM_ECDSA]],
    ['ed25519', [CKM_ECDSA, CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS]],
  ] as const)('a token without a mechanism for %s is refused', (kind, offered) => {
    expect(() => tokenSignature(spkiDer(keyPair(kind)), new Set<number>(offered))).toThrow(
      `the token has no signature mechanism for a ${kind} key`,
    );
  });
});

describe('the public key of CKA_EC_POINT', () => {
  const octets = (tag: number, content: Buffer): Buffer => Buffer.from([tag, content.length, ...content]);

  test.each([
    ['prime256v1', 'ec:P-256'],
    ['secp384r1', 'ec:P-384'],
  ] as const)('%s: wrapped, bare, as a BIT STRING, compressed', (curve, kind) => {
    const expected = spkiDer(keyPair(kind));
    const point = expected.subarray(kind === 'ec:P-256' ? -65 : -97);
    const compressed = ECDH.convertKey(point, curve, undefined, undefined, 'compressed');
    if (typeof compressed === 'string') throw new TypeError('not octets');
    for (const form of [point, compressed])
      for (const value of [form, octets(4, form), octets(3, Buffer.from([0, ...form]))])
        expect(ecPublicKey(value)).toEqual(expected);
  });

  test('a bare point that looks like an OCTET STRING is one point of 256', () => {
    const ecdh = createECDH('prime256v1');
    let point = ecdh.generateKeys();
    while (point[1] !== 63) point = ecdh.generateKeys();
    expect(ecPublicKey(point)?.subarray(-65)).toEqual(point);
    expect(ecPublicKey(octets(4, point))?.subarray(-65)).toEqual(point);
  });

  test.each([Buffer.alloc(0), Buffer.alloc(65), Buffer.alloc(65, 4), Buffer.from([4, 0])])('not %o', (value) => {
    expect(ecPublicKey(value)).toBeUndefined();
  });
});
