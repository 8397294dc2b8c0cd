import { describe, expect, test } from 'vitest';

import { fingerprintsOf, parseCertificate, verifyCertificateSignature } from '../../../src/pki/x509/certificate.ts';
import { ecdsaTwin, makeCa, makeClient } from '../../support/certificates.ts';

describe('a fingerprint matches the certificate and its ECDSA twin', () => {
  test.each(['ec:P-256', 'ec:P-384', 'ec:P-521'] as const)('signed with a key on %s', async (kind) => {
    const ca = await makeCa('CN=Root', { kind });
    const { der } = await makeClient('CN=device', ca);
    const [first, twin] = [parseCertificate(der), parseCertificate(ecdsaTwin(der, kind))];
    expect(await verifyCertificateSignature(twin, parseCertificate(ca.der))).toBe(true);
    expect(twin.fingerprint).not.toBe(first.fingerprint);
    expect(fingerprintsOf(first)[0]).toBe(first.fingerprint);
    expect(fingerprintsOf(first)).toContain(twin.fingerprint);
    expect(fingerprintsOf(twin)).toContain(first.fingerprint);
  });

  test('but not another certificate of the same names', async () => {
    const ca = await makeCa('CN=Root');
    const [first, renewed] = [await makeClient('CN=device', ca), await makeClient('CN=device', ca)];
    const fingerprints = fingerprintsOf(parseCertificate(first.der));
    for (const der of [renewed.der, ecdsaTwin(renewed.der)])
      expect(fingerprints).not.toContain(parseCertificate(der).fingerprint);
  });

  test.each(['rsa:2048', 'ed25519'] as const)('a certificate signed with %s has one fingerprint', async (kind) => {
    const certificate = parseCertificate((await makeClient('CN=device', await makeCa('CN=Root', { kind }))).der);
    expect(fingerprintsOf(certificate)).toEqual([certificate.fingerprint]);
  });

  test.each<[string, string]>([
    ['that is not DER', '00'],
    ['of s = 0', '3006020101020100'],
    ['of s < 0', '30060201010201ff'],
    ['of s beyond every order', `304a02010102450${'1'.repeat(137)}`],
  ])('a signature %s has no twin', async (_, signature) => {
    const ca = await makeCa('CN=Root');
    const { der } = await makeClient('CN=device', ca, { sign: () => Buffer.from(signature, 'hex') });
    const certificate = parseCertificate(der);
    expect(fingerprintsOf(certificate)).toEqual([certificate.fingerprint]);
  });
});
