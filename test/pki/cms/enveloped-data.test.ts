/** EnvelopedData and EncryptedPrivateKeyInfo against the openssl command. */
import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openssl, temporaryFolder } from '../../support/openssl.ts';
import { makeKey, type KeyKind } from '../../support/csr.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { issuerAndSerialNumber } from '../../../src/pki/cms/cms.ts';
import { encryptPrivateKey } from '../../../src/pki/cms/encrypted-private-key.ts';
import {
  buildEnvelopedData,
  type Recipient,
  openEnvelopedData,
  type DecryptionKey,
} from '../../../src/pki/cms/enveloped-data.ts';
import { berToDer } from '../../../src/pki/der/ber.ts';
import type { AesBits } from '../../../src/pki/cms/key-wrap.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parsePem } from '../../../src/pki/der/pem.ts';
import { parsePublicKey, subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const content = Buffer.from('the octets of a private key, of no particular length');
const BITS: readonly AesBits[] = [128, 192, 256];

async function envelope(recipient: Recipient, contentBits: AesBits = 256, wrapBits: AesBits = 256): Promise<string> {
  const file = folder.file(`${randomBytes(6).toString('hex')}.der`);
  writeFileSync(file, await buildEnvelopedData({ contentType: OID.data, content, recipient, contentBits, wrapBits }));
  return file;
}

function decrypt(file: string, ...args: string[]): string {
  return openssl(['cms', '-decrypt', '-inform', 'DER', '-in', file, '-binary', ...args]).toString();
}

describe('RFC 5652 §6.2.3: kekri', () => {
  const keyIdentifier = Buffer.from('key-1-');
  test.each(BITS.flatMap((kek) => BITS.map((bits) => ({ kek, bits }))))(
    'a $kek-bit key-encryption key, AES-$bits-CBC',
    async ({ kek, bits }) => {
      const key = randomBytes(kek / 8);
      const file = await envelope({ kind: 'kek', keyIdentifier, key }, bits);
      const args = ['-secretkey', key.toString('hex'), '-secretkeyid', keyIdentifier.toString('hex')];
      expect(decrypt(file, ...args)).toBe(content.toString());
    },
  );

  test('another key does not open it', async () => {
    const file = await envelope({ kind: 'kek', keyIdentifier, key: randomBytes(32) });
    const args = ['-secretkey', randomBytes(32).toString('hex'), '-secretkeyid', keyIdentifier.toString('hex')];
    expect(() => decrypt(file, ...args)).toThrow();
  });
});

describe.each<KeyKind>(['rsa2048', 'rsa3072', 'P-256', 'P-384', 'P-521'])('a recipient with a key on %s', (kind) => {
  const keyFile = folder.file(`${kind}.key`);
  const certificateFile = folder.file(`${kind}.pem`);
  let certificate: ReturnType<typeof parseCertificate>;
  beforeAll(() => {
    writeFileSync(keyFile, makeKey(kind).pem);
    const pem = openssl(['req', '-x509', '-new', '-key', keyFile, '-subj', '/CN=recipient', '-days', '2']);
    writeFileSync(certificateFile, pem);
    const [block] = parsePem(pem.toString());
    if (block === undefined) throw new Error('no certificate');
    certificate = parseCertificate(block.der);
  });

  test.each(BITS)('RFC 5652 §6.2.1, RFC 5753 §3.1: by issuer and serial number, AES-%s', async (bits) => {
    const { publicKey } = certificate;
    const file = await envelope({ kind: 'publicKey', rid: issuerAndSerialNumber(certificate), publicKey }, bits, bits);
    expect(decrypt(file, '-inkey', keyFile, '-recip', certificateFile)).toBe(content.toString());
  });

  test('by key identifier', async () => {
    const { publicKey } = certificate;
    const keyIdentifier = subjectKeyIdentifier(certificate.spki);
    const rid = { kind: 'subjectKeyIdentifier', keyIdentifier } as const;
    const file = await envelope({ kind: 'publicKey', rid, publicKey });
    expect(decrypt(file, '-inkey', keyFile, '-recip', certificateFile)).toBe(content.toString());
  });
});

describe('opening EnvelopedData', () => {
  const open = (file: string, key: DecryptionKey): string =>
    openEnvelopedData(berToDer(readFileSync(file)), key).content.toString();
  const CONTENT = content.toString();

  test.each(BITS)('with a shared key of %i bits, not with another', async (bits) => {
    const key = randomBytes(bits / 8);
    const own = await envelope({ kind: 'kek', keyIdentifier: Buffer.from('id'), key });
    expect(open(own, key)).toBe(CONTENT);
    expect(() => open(own, randomBytes(bits / 8))).toThrow('no recipient has this key');
    const theirs = folder.file(`kek-${bits}.der`);
    const args = ['-secretkey', key.toString('hex'), '-secretkeyid', '6964'];
    openssl(['cms', '-encrypt', '-binary', '-outform', 'DER', '-stream', '-aes256', ...args, '-out', theirs], content);
    expect(open(theirs, key)).toBe(CONTENT);
  });

  test.each<[KeyKind, readonly string[]]>([
    ['rsa2048', []],
    ['rsa2048', ['rsa_padding_mode:oaep']],
    ['rsa2048', ['rsa_padding_mode:oaep', 'rsa_oaep_md:sha384']],
    ['P-256', []],
    ['P-256', ['ecdh_kdf_md:sha256']],
    ['P-384', ['ecdh_kdf_md:sha384']],
    ['P-521', ['ecdh_kdf_md:sha512']],
  ])('with a private key on %s (openssl, %j), not with another', async (kind, keyOptions) => {
    const [key, other] = [makeKey(kind), makeKey(kind)];
    const name = `${kind}-${keyOptions.join('-').replaceAll(':', '-')}`;
    writeFileSync(folder.file(`${name}.key`), key.pem);
    const request = [
      'req',
      '-x509',
      '-new',
      '-key',
      folder.file(`${name}.key`),
      '-subj',
      '/CN=recipient',
      '-days',
      '2',
    ];
    writeFileSync(folder.file(`${name}.pem`), openssl(request));
    const file = folder.file(`${name}.der`);
    const recipient = ['-recip', folder.file(`${name}.pem`), ...keyOptions.flatMap((option) => ['-keyopt', option])];
    openssl(['cms', '-encrypt', '-binary', '-outform', 'DER', '-aes192', ...recipient, '-out', file], content);
    expect(open(file, createPrivateKey(key.pem))).toBe(CONTENT);
    expect(() => open(file, createPrivateKey(other.pem))).toThrow('no recipient has this key');
    const publicKey = parsePublicKey(key.spki);
    const rid = { kind: 'subjectKeyIdentifier', keyIdentifier: subjectKeyIdentifier(key.spki) } as const;
    expect(open(await envelope({ kind: 'publicKey', rid, publicKey }), createPrivateKey(key.pem))).toBe(CONTENT);
  });
});

test('RFC 4055 §4.1: RSA keys are transported with OAEP and SHA-256, never with PKCS #1 v1.5', async () => {
  const publicKey = parsePublicKey(makeKey('rsa2048').spki);
  const rid = { kind: 'subjectKeyIdentifier', keyIdentifier: Buffer.from('01', 'hex') } as const;
  const file = await envelope({ kind: 'publicKey', rid, publicKey });
  const text = openssl(['cms', '-cmsout', '-print', '-noout', '-inform', 'DER', '-in', file]).toString();
  expect(text).toContain('rsaesOaep');
  expect(text).toContain('sha256');
  expect(text).not.toContain('rsaEncryption');
});

test('a key that only signs is refused', async () => {
  const publicKey = parsePublicKey(makeKey('ed25519').spki);
  const rid = { kind: 'subjectKeyIdentifier', keyIdentifier: Buffer.from('01', 'hex') } as const;
  await expect(envelope({ kind: 'publicKey', rid, publicKey })).rejects.toThrow(RangeError);
});

describe('RFC 8018 §6.2: PBES2', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' });

  test('openssl pkcs8 opens it with the password and with no other', async () => {
    const file = folder.file('key.p8');
    writeFileSync(file, await encryptPrivateKey(pkcs8, Buffer.from('päss word')));
    const open = (password: string): Buffer =>
      openssl(['pkcs8', '-inform', 'DER', '-in', file, '-passin', `pass:${password}`, '-outform', 'DER']);
    expect(openssl(['pkey', '-outform', 'DER'], open('päss word'))).toEqual(
      openssl(['pkey', '-outform', 'DER', '-inform', 'DER'], pkcs8),
    );
    expect(() => open('pass word')).toThrow();
  });

  test('at least 100 000 iterations of HMAC-SHA256 and AES-256', async () => {
    const text = openssl(['asn1parse', '-inform', 'DER'], await encryptPrivateKey(pkcs8, Buffer.from('x'))).toString();
    expect(text).toContain('PBKDF2');
    expect(text).toContain('hmacWithSHA256');
    expect(text).toContain('aes-256-cbc');
    const [, hex] = /INTEGER\s+:([0-9A-F]+)/.exec(text) ?? [];
    expect(Number.parseInt(hex ?? '0', 16)).toBeGreaterThanOrEqual(100_000);
  });
});
