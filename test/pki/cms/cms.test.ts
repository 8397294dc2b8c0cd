import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { berToDer } from '../../../src/pki/der/ber.ts';
import { parsePemCertificates, type Certificate } from '../../../src/pki/x509/certificate.ts';
import {
  parseSignedData,
  verifySignerInfo,
  buildSignedData,
  issuerAndSerialNumber,
  keySigner,
} from '../../../src/pki/cms/cms.ts';
import { DerError, NULL, octetString, oid, sequence, tlv } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';
import { removeFolder } from '../../support/folders.ts';

const dir = mkdtempSync(join(tmpdir(), 'estuary-cms-'));
const file = (name: string): string => join(dir, name);
const openssl = (...args: string[]): Buffer => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
const content = Buffer.from('what is signed\n');

const KEYS = {
  'P-256': ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'P-384': ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
  'RSA 2048': ['rsa:2048'],
  Ed25519: ['ed25519'],
} as const;

const certificates = new Map<string, Certificate>();
const only = <T>(items: readonly T[]): T => {
  const [item, ...more] = items;
  if (item === undefined || more.length > 0) throw new Error(`expected one item, got ${items.length}`);
  return item;
};
const certificate = (name: string): Certificate => {
  const found = certificates.get(name);
  if (found === undefined) throw new Error(`no certificate ${name}`);
  return found;
};

beforeAll(() => {
  writeFileSync(file('content'), content);
  for (const [name, algorithm] of Object.entries(KEYS)) {
    openssl(
      ...['req', '-x509', '-nodes', '-days', '1', '-subj', `/CN=${name}`, '-newkey', ...algorithm],
      ...['-keyout', `${name}.key`, '-out', `${name}.pem`],
    );
    certificates.set(name, only(parsePemCertificates(readFileSync(file(`${name}.pem`), 'latin1'))));
  }
});
afterAll(() => removeFolder(dir));

// OpenSSL 3.0 cannot use Ed25519 in CMS; a separate test below covers that key.
describe.each(['P-256', 'P-384', 'RSA 2048'])('RFC 5652 §5: SignedData with a %s key', (name) => {
  test.each(['issuerAndSerialNumber', 'subjectKeyIdentifier'] as const)(
    'OpenSSL verifies what we sign, by %s',
    async (kind) => {
      const signer = certificate(name);
      const sid =
        kind === 'issuerAndSerialNumber'
          ? issuerAndSerialNumber(signer)
          : { kind, keyIdentifier: subjectKeyIdentifier(signer.publicKey.spki) };
      const der = await buildSignedData({
        contentType: OID.data,
        content,
        certificates: [signer.der],
        signers: [keySigner(createPrivateKey(readFileSync(file(`${name}.key`))), signer.publicKey, sid)],
        signingTime: new Date(),
      });
      writeFileSync(file('ours.der'), der);
      const out = openssl(
        'cms',
        '-verify',
        '-binary',
        '-inform',
        'DER',
        '-in',
        'ours.der',
        '-CAfile',
        `${name}.pem`,
        '-purpose',
        'any',
      );
      expect(out).toEqual(content);
      const parsed = parseSignedData(der);
      expect(await verifySignerInfo(parsed, only(parsed.signerInfos), signer.publicKey)).toBe(true);
    },
  );

  test('we verify what OpenSSL signs, in DER and in BER with indefinite lengths, and nothing that was altered', async () => {
    const signer = certificate(name);
    for (const form of [[], ['-stream', '-indef']]) {
      const ber = openssl(
        ...[
          'cms',
          '-sign',
          '-nodetach',
          '-binary',
          '-in',
          'content',
          '-signer',
          `${name}.pem`,
          '-inkey',
          `${name}.key`,
        ],
        ...['-md', 'sha256', '-outform', 'DER', ...form],
      );
      const parsed = parseSignedData(berToDer(ber));
      expect(parsed.content).toEqual(content);
      const info = only(parsed.signerInfos);
      expect(await verifySignerInfo(parsed, info, signer.publicKey)).toBe(true);
      expect(await verifySignerInfo({ ...parsed, content: Buffer.from('other') }, info, signer.publicKey)).toBe(false);
      expect(await verifySignerInfo({ ...parsed, contentType: OID.signedData }, info, signer.publicKey)).toBe(false);
      const signature = Buffer.from(info.signature);
      signature[signature.length - 1] = (signature.at(-1) ?? 0) ^ 1;
      expect(await verifySignerInfo(parsed, { ...info, signature }, signer.publicKey)).toBe(false);
      const stranger = certificate(name === 'P-256' ? 'P-384' : 'P-256');
      expect(await verifySignerInfo(parsed, info, stranger.publicKey)).toBe(false);
    }
  });
});

test('RFC 8419 §2.3: an Ed25519 signature goes with SHA-512 and verifies; over other content it does not', async () => {
  const signer = certificate('Ed25519');
  const key = createPrivateKey(readFileSync(file('Ed25519.key')));
  const der = await buildSignedData({
    contentType: OID.data,
    content,
    signers: [keySigner(key, signer.publicKey, issuerAndSerialNumber(signer))],
    signingTime: new Date(),
  });
  const parsed = parseSignedData(der);
  const info = only(parsed.signerInfos);
  expect(info.digest).toBe('sha512');
  expect(await verifySignerInfo(parsed, info, signer.publicKey)).toBe(true);
  expect(await verifySignerInfo({ ...parsed, content: Buffer.from('other') }, info, signer.publicKey)).toBe(false);
});

test('RFC 5652 §5.3: content that is not id-data, signed without attributes, does not verify', async () => {
  const signer = certificate('P-256');
  const der = openssl(
    ...['cms', '-sign', '-nodetach', '-noattr', '-binary', '-in', 'content', '-econtent_type', OID.signedData],
    ...['-signer', 'P-256.pem', '-inkey', 'P-256.key', '-outform', 'DER'],
  );
  const parsed = parseSignedData(der);
  expect(await verifySignerInfo(parsed, only(parsed.signerInfos), signer.publicKey)).toBe(false);
  expect(
    await verifySignerInfo({ ...parsed, contentType: OID.data }, only(parsed.signerInfos), signer.publicKey),
    'the same signature over id-data counts',
  ).toBe(true);
});

describe('X.690 §8: BER to DER', () => {
  const indefinite = (tag: number, ...parts: Buffer[]): Buffer =>
    Buffer.concat([Buffer.from([tag, 0x80]), ...parts, Buffer.alloc(2)]);

  test('DER comes back unchanged', () => {
    const der = certificate('RSA 2048').der;
    expect(berToDer(der)).toEqual(der);
  });

  test('indefinite lengths, long lengths and constructed strings become DER', () => {
    const ber = indefinite(
      0x30,
      indefinite(0x24, octetString(Buffer.from('ab')), octetString(Buffer.from('c'))),
      Buffer.from([0x04, 0x81, 0x01, 0x64]),
    );
    expect(berToDer(ber)).toEqual(sequence(octetString(Buffer.from('abc')), octetString(Buffer.from('d'))));
  });

  test.each([
    ['empty input', Buffer.alloc(0)],
    ['no end of contents', Buffer.from([0x30, 0x80, 0x05, 0x00])],
    ['trailing bytes', Buffer.concat([sequence(), Buffer.of(0)])],
    ['an indefinite primitive', Buffer.from([0x04, 0x80, 0, 0])],
    ['a value that is cut', Buffer.from([0x04, 0x05, 1])],
    ['a length of five octets', Buffer.from([0x04, 0x85, 0, 0, 0, 0, 0])],
    ['a segment of another type', tlv(0x24, sequence())],
    ['unbounded nesting', Buffer.alloc(4000, Buffer.from([0x30, 0x80]))],
    ['a hundred thousand elements', sequence(Buffer.alloc(200_000, Buffer.from([0x05, 0x00])))],
  ])('%s is refused', (_, ber) => {
    expect(() => berToDer(ber)).toThrow(DerError);
  });
});

test("NSS's form of ECDSA, with a NULL for parameters, is verified", async () => {
  const signer = certificate('P-256');
  const key = createPrivateKey(readFileSync(file('P-256.key')));
  const ours = keySigner(key, signer.publicKey, issuerAndSerialNumber(signer));
  const nss = { ...ours.signatureAlgorithm, der: sequence(oid(OID.ecdsaWithSHA256), NULL) };
  const parsed = parseSignedData(
    await buildSignedData({
      contentType: OID.data,
      content,
      signers: [{ ...ours, signatureAlgorithm: nss }],
      signingTime: new Date(),
    }),
  );
  expect(await verifySignerInfo(parsed, only(parsed.signerInfos), signer.publicKey)).toBe(true);
});
