import { describe, expect, test, vi } from 'vitest';
import { parseCertificate, verifyCertificateSignature } from '../../../src/pki/x509/certificate.ts';
import { verifySignature } from '../../../src/pki/x509/signature-algorithms.ts';
import { VerifiedSignatures } from '../../../src/pki/x509/signed.ts';
import { makeCa, makeClient } from '../../support/certificates.ts';

vi.mock('../../../src/pki/x509/signature-algorithms.ts', { spy: true });

const spki = Buffer.from('the key of a CA');
const otherSpki = Buffer.from('another key');

describe('a signature that was verified is known', () => {
  test('by the certificate and the key', () => {
    const known = new VerifiedSignatures();
    known.add('aa', spki);
    expect(known.has('aa', spki)).toBe(true);
    expect(known.has('ab', spki)).toBe(false);
    expect(known.has('aa', otherSpki)).toBe(false);
  });

  test('within bounds: the least recently used goes', () => {
    const known = new VerifiedSignatures(2);
    known.add('aa', spki);
    known.add('bb', spki);
    expect(known.has('aa', spki)).toBe(true);
    known.add('cc', spki);
    expect(['aa', 'bb', 'cc'].map((fingerprint) => known.has(fingerprint, spki))).toEqual([true, false, true]);
  });

  test('so it costs one verification, and no other is taken for it', async () => {
    const verifications = vi.mocked(verifySignature).mock;
    const ca = await makeCa('CN=Root');
    const root = parseCertificate(ca.der);
    const { der } = await makeClient('CN=device', ca);
    const namesake = parseCertificate((await makeCa('CN=Root', { slot: 'another key' })).der);
    const again = (): Promise<boolean> => verifyCertificateSignature(parseCertificate(Buffer.from(der)), root);
    expect(await again()).toBe(true);
    expect(verifications.calls).toHaveLength(1);
    expect(await again()).toBe(true);
    expect(verifications.calls).toHaveLength(1);
    expect(await verifyCertificateSignature(parseCertificate(der), namesake)).toBe(false);
    const changed = Buffer.from(der);
    changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1);
    for (let i = 0; i < 2; i++) expect(await verifyCertificateSignature(parseCertificate(changed), root)).toBe(false);
    expect(verifications.calls).toHaveLength(4);
  });
});
