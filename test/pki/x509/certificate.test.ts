import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';

import { afterAll, describe, expect, test } from 'vitest';

import {
  parseCertificate,
  parsePemCertificates,
  verifyCertificateSignature,
} from '../../../src/pki/x509/certificate.ts';
import { DerError } from '../../../src/pki/der/der.ts';
import { formatGeneralName } from '../../../src/pki/x509/general-name.ts';
import { formatName, namesEqual } from '../../../src/pki/x509/name.ts';
import { encodePem, parsePem } from '../../../src/pki/der/pem.ts';
import { subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';
import { CA_KINDS, makeCa } from '../../support/ca.ts';
import { keyPair, pkcs8Pem } from '../../support/keys.ts';
import { openssl, opensslText, temporaryFolder } from '../../support/openssl.ts';
import { InputError } from '../../../src/pki/input-error.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe("RFC 5280: the world's root certificates are read as node:crypto reads them", () => {
  test.each(rootCertificates.map((pem) => [new X509Certificate(pem).subject.replace(/\n/g, ', '), pem] as const))(
    '%s',
    async (_, pem) => {
      const [certificate] = parsePemCertificates(pem);
      const node = new X509Certificate(pem);
      if (certificate === undefined) throw new Error('nothing read');
      expect(certificate.serialNumber).toBe(
        node.serialNumber.toLowerCase().padStart(certificate.serialNumber.length, '0'),
      );
      expect(certificate.notBefore).toEqual(node.validFromDate);
      expect(certificate.notAfter).toEqual(node.validToDate);
      expect(certificate.isCa).toBe(node.ca);
      expect(certificate.spki).toEqual(node.publicKey.export({ format: 'der', type: 'spki' }));
      expect(certificate.fingerprint).toBe(node.fingerprint256.replaceAll(':', '').toLowerCase());
      expect(certificate.der).toEqual(node.raw);
      expect(namesEqual(certificate.subject, certificate.issuer)).toBe(true);
      // SHA-1 self-signatures exist among the roots; they are not accepted as signatures
      const sha1 = node.signatureAlgorithm === 'sha1WithRSAEncryption';
      expect(await verifyCertificateSignature(certificate, certificate)).toBe(!sha1);
    },
  );
});

describe('a certificate of openssl', () => {
  const key = folder.file('leaf.key');
  const leaf = (...args: string[]): Buffer =>
    openssl(['req', '-x509', '-new', '-key', key, '-outform', 'DER', '-subj', '/CN=leaf/O=Example', ...args]);

  test('its fields', () => {
    writeFileSync(key, pkcs8Pem(keyPair('ec:P-256')), { mode: 0o600 });
    const der = leaf(
      ...[
        '-days',
        '10',
        '-addext',
        'subjectAltName=DNS:a.example,IP:192.0.2.1',
        '-addext',
        'keyUsage=digitalSignature',
      ],
      ...['-addext', 'extendedKeyUsage=clientAuth', '-set_serial', '0x00ff01'],
    );
    const certificate = parseCertificate(der);
    expect(certificate).toMatchObject({
      version: 3,
      serialNumber: 'ff01',
      keyUsage: ['digitalSignature'],
      extKeyUsage: ['1.3.6.1.5.5.7.3.2'],
      pathLength: undefined,
    });
    expect(formatName(certificate.subject)).toBe('O=Example,CN=leaf');
    expect(certificate.subjectAltNames.map(formatGeneralName)).toEqual(['DNS:a.example', 'IP:192.0.2.1']);
    expect(certificate.publicKey.keyType).toBe('ec:P-256');
    expect(certificate.subjectKeyIdentifier).toEqual(subjectKeyIdentifier(certificate.spki));
    expect(certificate.publicKey.keyObject).toBe(certificate.publicKey.keyObject);
  });

  test.each(CA_KINDS)("RFC 5280 §6.1.3: an issuer's signature with %s, and nobody else's", async (kind) => {
    const made = makeCa(folder.file, kind, { kind });
    const [certificate, root] = [made.certificate, made.root].map((path) => {
      const [parsed] = parsePemCertificates(readFileSync(path, 'utf8'));
      if (parsed === undefined) throw new Error('nothing read');
      return parsed;
    });
    if (certificate === undefined || root === undefined) throw new Error('nothing read');
    expect(await verifyCertificateSignature(certificate, root)).toBe(true);
    expect(await verifyCertificateSignature(root, root)).toBe(true);
    expect(await verifyCertificateSignature(certificate, certificate)).toBe(false);
    expect(await verifyCertificateSignature(root, certificate)).toBe(false);
    expect(certificate.authorityKeyIdentifier).toEqual(root.subjectKeyIdentifier);
    expect(certificate.pathLength).toBe(0);
  });

  test('RFC 4055: RSASSA-PSS with SHA-256 and with SHA-512', async () => {
    const rsa = folder.file('rsa.key');
    writeFileSync(rsa, pkcs8Pem(keyPair('rsa:2048')), { mode: 0o600 });
    for (const digest of ['sha256', 'sha512']) {
      const der = openssl([
        ...['req', '-x509', '-new', '-key', rsa, '-outform', 'DER', '-subj', '/CN=pss', `-${digest}`],
        ...['-sigopt', 'rsa_padding_mode:pss', '-sigopt', 'rsa_pss_saltlen:digest'],
      ]);
      const certificate = parseCertificate(der);
      expect(await verifyCertificateSignature(certificate, certificate)).toBe(true);
    }
  });

  test('SHA-1 is no signature', async () => {
    const rsa = folder.file('rsa.key');
    const certificate = parseCertificate(
      openssl(['req', '-x509', '-new', '-key', rsa, '-outform', 'DER', '-subj', '/CN=old', '-sha1']),
    );
    expect(await verifyCertificateSignature(certificate, certificate)).toBe(false);
  });

  test('what is no certificate is refused', () => {
    const der = leaf();
    for (const broken of [
      Buffer.alloc(0),
      der.subarray(0, -1),
      Buffer.concat([der, Buffer.alloc(1)]),
      openssl(['req', '-new', '-key', key, '-outform', 'DER', '-subj', '/CN=x']),
    ])
      expect(() => parseCertificate(broken)).toThrow(DerError);
    // RFC 5280 §4.1.1.2: the algorithm inside is the algorithm outside
    const other = Buffer.from(der);
    const at = other.lastIndexOf(Buffer.from('06082a8648ce3d040302', 'hex'));
    other.writeUInt8(3, at + 9);
    expect(() => parseCertificate(other)).toThrow(/signature algorithms/);
  });
});

describe('RFC 7468: PEM', () => {
  const der = Buffer.from('00112233445566778899'.repeat(20), 'hex');

  test('OpenSSL reads what is written, and what OpenSSL writes is read', () => {
    const pem = readFileSync(makeCa(folder.file, 'pem', { kind: 'ed25519' }).certificate, 'utf8');
    const [block] = parsePem(pem);
    expect(encodePem('CERTIFICATE', block?.der ?? Buffer.alloc(0))).toBe(pem);
    expect(opensslText(['x509', '-outform', 'PEM'], encodePem('CERTIFICATE', block?.der ?? Buffer.alloc(0)))).toBe(pem);
  });

  test('text around, several blocks, CRLF and one long line', () => {
    const one = encodePem('X', der);
    const text = `intro\n${one}between\n${one.replaceAll('\n', '\r\n')}-----BEGIN Y-----\n${der.toString('base64')}\n-----END Y-----`;
    expect(parsePem(text)).toEqual([
      { label: 'X', der },
      { label: 'X', der },
      { label: 'Y', der },
    ]);
  });

  test.each([
    ['another label at the end', '-----BEGIN A-----\nAAAA\n-----END B-----'],
    ['no base64', '-----BEGIN A-----\n????\n-----END A-----'],
    ['cut base64', '-----BEGIN A-----\nAAA\n-----END A-----'],
    ['nothing inside', '-----BEGIN A-----\n-----END A-----'],
  ])('%s is refused', (_, text) => {
    expect(() => parsePem(text)).toThrow(InputError);
  });
});
