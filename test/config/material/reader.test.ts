/** Private keys as other software writes them, and their certificates. */
import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { isKeyOf, readPrivateKey } from '../../../src/config/material/reader.ts';
import { Secret } from '../../../src/config/secret.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { keyPair, pkcs8Pem } from '../../support/keys.ts';
import { openssl, temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const plain = folder.file('plain.key');
writeFileSync(plain, pkcs8Pem(keyPair('ec:P-256')), { mode: 0o600 });
const expected = createPrivateKey(readFileSync(plain));
const LEGACY = ['-provider', 'legacy', '-provider', 'default'];
const pkcs8 = ['pkcs8', '-topk8', '-passout', 'pass:secret'];

describe('an encrypted key is opened with its passphrase', () => {
  test.each([
    ['PBES2 with AES', [...pkcs8, '-v2', 'aes-256-cbc']],
    ['PBES2 with HMAC of SHA-1', [...pkcs8, '-v2', 'aes128', '-v2prf', 'hmacWithSHA1']],
    ['scrypt', [...pkcs8, '-scrypt']],
    ['PBES1 with 3DES', [...pkcs8, '-v1', 'PBE-SHA1-3DES']],
    ['the form of PEM before PKCS #8', ['ec', '-aes128', '-passout', 'pass:secret']],
  ])('%s', async (what, args) => {
    const file = folder.file(`${what}.key`);
    openssl([...args, '-in', plain, '-out', file]);
    const key = await readPrivateKey(file, { password: new Secret(Buffer.from('secret')) });
    expect(key.equals(expected)).toBe(true);
    await expect(readPrivateKey(file, { password: new Secret(Buffer.from('other')) })).rejects.toThrow(
      'has another passphrase',
    );
    await expect(readPrivateKey(file, {})).rejects.toThrow('is encrypted');
  });

  test('an outdated algorithm is no wrong passphrase', async () => {
    const file = folder.file('rc2.key');
    openssl([...pkcs8, '-v1', 'PBE-SHA1-RC2-40', '-in', plain, '-out', file, ...LEGACY]);
    const read = readPrivateKey(file, { password: new Secret(Buffer.from('secret')) });
    await expect(read).rejects.toThrow('is encrypted with an outdated algorithm');
  });
});

test('a key belongs to a certificate whose point is compressed', () => {
  const compressed = folder.file('compressed.key');
  openssl(['ec', '-in', plain, '-conv_form', 'compressed', '-out', compressed]);
  const of = (key: string) =>
    parseCertificate(openssl(['req', '-x509', '-new', '-key', key, '-subj', '/CN=CA', '-outform', 'DER']));
  expect(of(compressed).spki).not.toEqual(of(plain).spki);
  expect([of(plain), of(compressed)].map((certificate) => isKeyOf(expected, certificate))).toEqual([true, true]);
});
