/** Fixed and copied extensions and certificate policies, as OpenSSL and @peculiar/x509 read them. */
import { writeFileSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import { afterAll, describe, expect, test } from 'vitest';
import type { IssuanceRequest } from '../../../src/ca/driver.ts';
import type { LocalCa } from '../../../src/ca/local/index.ts';
import type { IssuanceProfile } from '../../../src/ca/local/local-ca.ts';
import { octetString, sequence, utf8String } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import type { Extension } from '../../../src/pki/x509/extensions.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { makeCa, type TestCa } from '../../support/ca.ts';
import { keyPair, spkiDer } from '../../support/keys.ts';
import { opensslText, temporaryFolder } from '../../support/openssl.ts';
import { openFileCa } from '../../support/own-ca.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const made = makeCa(folder.file, 'plain', { kind: 'ec:P-256' });
const limited = makeCa(folder.file, 'limited', {
  kind: 'ec:P-256',
  extensions: ['certificatePolicies=1.3.6.1.4.1.1.1'],
});

const open = (profile: Partial<IssuanceProfile>, ca: TestCa = made): Promise<LocalCa> =>
  openFileCa(
    {
      label: 'devices',
      certificate: ca.certificate,
      chain: ca.root,
      file: { private_key: ca.privateKey },
      profile: {
        validity_days: 90,
        max_validity_days: 397,
        key_usage: ['digitalSignature'],
        extended_key_usage: ['clientAuth'],
        ...profile,
      },
    },
    { now: Date.now },
  );

const request = (extensions: readonly Extension[]): IssuanceRequest => ({
  request_id: 'r1',
  subject: parseDistinguishedName('CN=device 1'),
  subjectAltNames: [],
  spki: spkiDer(keyPair('ec:P-256', 'subject')),
  csr: undefined,
  extensions,
});

async function issue(localCa: LocalCa, extensions: readonly Extension[] = []): Promise<x509.X509Certificate> {
  const result = await (await localCa.prepare(request(extensions))).issue();
  if (result.status !== 'issued') throw new Error(result.status);
  return new x509.X509Certificate(result.certificate);
}

function opensslVerify(certificate: x509.X509Certificate, more: readonly string[] = []): string {
  const leaf = folder.file('leaf.pem');
  writeFileSync(leaf, encodePem('CERTIFICATE', Buffer.from(certificate.rawData)));
  return opensslText(['verify', '-x509_strict', ...more, '-CAfile', made.root, '-untrusted', made.certificate, leaf]);
}

/** Critical, and the value in hex; undefined: it is not there. */
function read(certificate: x509.X509Certificate, oid: string): readonly [boolean, string] | undefined {
  const extension = certificate.getExtension(oid);
  return extension === null ? undefined : [extension.critical, Buffer.from(extension.value).toString('hex')];
}

const ROLE = '1.3.6.1.4.1.55555.1';
const role = utf8String('press');
const asked = (value: Buffer, critical = false): Extension => ({ oid: ROLE, critical, value });

describe('[[ca.profile.extensions]]', () => {
  test('a fixed one stands in every certificate, whatever the CSR asks for', async () => {
    const mustStaple = { oid: OID.tlsFeature, critical: false, value: '3003020105' };
    const localCa = await open({ extensions: [mustStaple, { oid: ROLE, critical: true, value: '0500' }] });
    const certificate = await issue(localCa, [asked(role)]);
    expect(read(certificate, OID.tlsFeature)).toEqual([false, '3003020105']);
    expect(read(certificate, ROLE)).toEqual([true, '0500']);
    const text = opensslText(
      ['x509', '-inform', 'DER', '-noout', '-ext', 'tlsfeature'],
      Buffer.from(certificate.rawData),
    );
    expect(text).toBe('TLS Feature: \n    status_request\n');
    expect(opensslVerify(certificate, ['-ignore_critical'])).toMatch(/: OK\n$/);
  });

  test.each([
    [false, true],
    [true, false],
  ])('a copied one has the value of the CSR and is critical as configured (%s)', async (critical, inCsr) => {
    const localCa = await open({ extensions: [{ oid: ROLE, critical, from: 'csr' }] });
    const certificate = await issue(localCa, [asked(role, inCsr)]);
    expect(read(certificate, ROLE)).toEqual([critical, role.toString('hex')]);
    expect(read(await issue(localCa), ROLE)).toBeUndefined();
  });

  test('nothing else is copied', async () => {
    const localCa = await open({ extensions: [{ oid: ROLE, critical: false, from: 'csr' }] });
    const other: Extension = { oid: `${ROLE}.2`, critical: false, value: role };
    const ca: Extension = { oid: OID.basicConstraints, critical: true, value: sequence() };
    const types = (await issue(localCa, [other, ca])).extensions.map(({ type }) => type);
    expect(types).not.toContain(other.oid);
    expect(types.filter((type) => type === OID.basicConstraints)).toHaveLength(1);
  });

  test.each([
    ['no DER', Buffer.from('nonsense')],
    ['two values', Buffer.concat([role, role])],
    ['a value that is broken within', sequence(Buffer.from([4, 9]))],
    ['a value too long', octetString(Buffer.alloc(4096))],
  ])('a copied one that is %s breaks a lint', async (_, value) => {
    const localCa = await open({ extensions: [{ oid: ROLE, critical: false, from: 'csr' }] });
    await expect(localCa.prepare(request([asked(value)]))).rejects.toMatchObject({
      status: 400,
      code: 'CERTIFICATE_LINT',
      message: expect.stringContaining('(profile-extensions)') as unknown,
    });
  });

  test.each([
    ['nameConstraints', OID.nameConstraints],
    ['basicConstraints', OID.basicConstraints],
    ['policyConstraints', OID.policyConstraints],
    ['keyUsage', OID.keyUsage],
    ['ocspNoCheck', OID.ocspNoCheck],
  ])('%s does not get by the lints, even where a profile has it', async (_, oid) => {
    const value = oid === OID.keyUsage ? '03020106' : '3000';
    const localCa = await open({ extensions: [{ oid, critical: true, value }] });
    await expect(localCa.prepare(request([]))).rejects.toMatchObject({ status: 500, code: 'CERTIFICATE_LINT' });
  });
});

describe('[[ca.profile.policies]] (RFC 5280 §4.2.1.4)', () => {
  const policies = [{ oid: '1.3.6.1.4.1.1.1', cps: 'https://pki.example.com/cps' }, { oid: '1.3.6.1.4.1.1.2' }];

  test('stand in the certificate, with their CPS', async () => {
    const certificate = await issue(await open({ policies }));
    const extension = certificate.getExtension(x509.CertificatePolicyExtension);
    expect(extension).toMatchObject({ critical: false, policies: ['1.3.6.1.4.1.1.1', '1.3.6.1.4.1.1.2'] });
    const der = Buffer.from(certificate.rawData);
    expect(opensslText(['x509', '-inform', 'DER', '-noout', '-ext', 'certificatePolicies'], der)).toBe(
      'X509v3 Certificate Policies: \n    Policy: 1.3.6.1.4.1.1.1\n      CPS: https://pki.example.com/cps\n    Policy: 1.3.6.1.4.1.1.2\n',
    );
    expect(opensslVerify(certificate)).toMatch(/: OK\n$/);
  });

  test('are within those of the CA certificate', async () => {
    const [first] = policies;
    if (first === undefined) throw new Error('no policy');
    expect(read(await issue(await open({ policies: [first] }, limited)), OID.certificatePolicies)).toBeDefined();
    await expect((await open({ policies }, limited)).prepare(request([]))).rejects.toMatchObject({
      status: 500,
      code: 'CERTIFICATE_LINT',
    });
  });
});
