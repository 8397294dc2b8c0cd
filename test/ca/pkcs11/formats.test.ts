import { constants, privateEncrypt, sign, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ecdsaSigValue, Mechanism, tokenSignature } from '../../../src/ca/pkcs11/formats.ts';
import { keyPair, spkiDer } from '../../support/keys.ts';

const TBS = Buffer.from('to be signed');
const { CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS, CKM_ECDSA } = Mechanism;

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
