/**
 * Certificates of local CAs, checked by OpenSSL and other libraries.
 *
 * Longer than other files: the certificates are made once for all tests.
 */

import { X509Certificate, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

import * as x509 from '@peculiar/x509';
import { afterAll, describe, expect, test } from 'vitest';

import { FileSigner, LocalCa } from '../../../src/ca/local/index.ts';
import type { IssuanceRequest, Signer } from '../../../src/ca/driver.ts';
import { parseCertificate, parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { ipAddress, type GeneralName } from '../../../src/pki/x509/general-name.ts';
import { EMPTY_NAME, parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { CA_KINDS, makeCa, type CaKind, type TestCa, type TestCaOptions } from '../../support/ca.ts';
import { KEY_KINDS, keyPair, pkcs8Pem, spkiDer } from '../../support/keys.ts';
import { opensslText, temporaryFolder } from '../../support/openssl.ts';
import { openFileCa, type FileCaFiles } from '../../support/own-ca.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const DAY = 86_400_000;
const profile = {
  validity_days: 90,
  max_validity_days: 397,
  key_usage: ['digitalSignature', 'keyEncipherment', 'keyAgreement'],
  extended_key_usage: ['clientAuth', 'serverAuth'],
} as const;

const files = new Map<string, TestCa>();
function ca(kind: CaKind, name: string = kind, options: Partial<TestCaOptions> = {}): TestCa {
  const made = files.get(name) ?? makeCa(folder.file, name, { kind, ...options });
  files.set(name, made);
  return made;
}

function openCa(made: TestCa, overrides: Partial<FileCaFiles> = {}, now: () => number = Date.now): Promise<LocalCa> {
  const config = { label: 'devices', certificate: made.certificate, chain: made.root, profile, ...overrides };
  return openFileCa({ ...config, file: { private_key: made.privateKey } }, { now });
}

const request = (overrides: Partial<IssuanceRequest> = {}): IssuanceRequest => ({
  request_id: 'r1',
  subject: parseDistinguishedName('CN=device 1,O=Example'),
  subjectAltNames: [{ kind: 'dns', value: 'device1.example' }],
  spki: spkiDer(keyPair('ec:P-256', 'subject')),
  csr: undefined,
  ...overrides,
});

async function issue(localCa: LocalCa, overrides: Partial<IssuanceRequest> = {}): Promise<Buffer> {
  const prepared = await localCa.prepare(request(overrides));
  const result = await prepared.issue();
  if (result.status !== 'issued') throw new Error('pending');
  const certificate = parseCertificate(result.certificate);
  expect(certificate.serialNumber).toBe(prepared.serial);
  // What the record is made of is what a reader of the certificate finds.
  expect(result.content).toBeDefined();
  expect(certificate).toMatchObject({ ...result.content });
  return result.certificate;
}

function opensslVerify(der: Buffer, made: TestCa, purpose = 'sslclient'): string {
  const leaf = folder.file('leaf.pem');
  writeFileSync(leaf, encodePem('CERTIFICATE', der));
  return opensslText([
    'verify',
    '-x509_strict',
    '-purpose',
    purpose,
    '-CAfile',
    made.root,
    '-untrusted',
    made.certificate,
    leaf,
  ]);
}

describe.each(CA_KINDS)('RFC 5280: a CA with a key of %s', (caKind) => {
  test.each(KEY_KINDS)('certifies a key of %s; OpenSSL and @peculiar/x509 accept it', async (kind) => {
    const made = ca(caKind);
    const localCa = await openCa(made);
    const spki = spkiDer(keyPair(kind, 'subject'));
    const der = await issue(localCa, { spki });
    expect(opensslVerify(der, made)).toMatch(/: OK\n$/);
    expect(opensslVerify(der, made, 'sslserver')).toMatch(/: OK\n$/);

    const issuer = new X509Certificate(readFileSync(made.certificate));
    const node = new X509Certificate(der);
    expect(node.checkIssued(issuer) && node.verify(issuer.publicKey)).toBe(true);
    expect(node.publicKey.export({ format: 'der', type: 'spki' })).toEqual(spki);
    expect(node.ca).toBe(false);

    const other = new x509.X509Certificate(der);
    expect(other.getExtension(x509.BasicConstraintsExtension)).toMatchObject({ ca: false, critical: true });
    expect(other.getExtension(x509.KeyUsagesExtension)).toMatchObject({ critical: true });
    expect(other.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([
      '1.3.6.1.5.5.7.3.2',
      '1.3.6.1.5.5.7.3.1',
    ]);
    expect(other.serialNumber).toMatch(/^[4-7][0-9a-f]{31}$/);
    const [parsedIssuer] = parsePemCertificates(readFileSync(made.certificate, 'utf8'));
    expect(other.getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId).toBe(
      parsedIssuer?.subjectKeyIdentifier?.toString('hex'),
    );
    expect(other.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId).toBe(
      (await x509.SubjectKeyIdentifierExtension.create(other.publicKey)).keyId,
    );
  });
});

describe('the profile shapes the certificate', () => {
  test.each([
    ['rsa:2048', 'Digital Signature, Key Encipherment'],
    ['ec:P-256', 'Digital Signature, Key Agreement'],
    ['ed25519', 'Digital Signature'],
  ] as const)('RFC 3279, RFC 5480, RFC 8410: a %s key gets the usages that it can have', async (kind, usages) => {
    const der = await issue(await openCa(ca('ec:P-256')), { spki: spkiDer(keyPair(kind, 'subject')) });
    const text = opensslText(['x509', '-inform', 'DER', '-noout', '-ext', 'keyUsage'], der);
    expect(text).toBe(`X509v3 Key Usage: critical\n    ${usages}\n`);
  });

  test('a key that can have none of the usages is refused', async () => {
    const localCa = await openCa(ca('ec:P-256'), { profile: { ...profile, key_usage: ['keyEncipherment'] } });
    await expect(localCa.prepare(request())).rejects.toMatchObject({ status: 400, code: 'KEY_USAGE_IMPOSSIBLE' });
  });

  test('empty lists leave keyUsage and extKeyUsage out', async () => {
    const bare = { ...profile, key_usage: [], extended_key_usage: [] };
    const certificate = parseCertificate(await issue(await openCa(ca('ec:P-256'), { profile: bare })));
    expect(certificate.keyUsage).toBeUndefined();
    expect(certificate.extKeyUsage).toBeUndefined();
  });

  test('an unknown purpose in the profile is refused at start', async () => {
    const wrong = { ...profile, extended_key_usage: ['clientauthentication'] };
    await expect(openCa(ca('ec:P-256'), { profile: wrong })).rejects.toThrow(/clientauthentication/);
  });

  test('RFC 5280 §4.2.1.13, §4.2.2.1: publication URLs stand in CRL distribution point and AIA', async () => {
    const made = ca('ec:P-256');
    const publication = {
      crl: ['http://pki.example/crl/devices.crl'],
      ocsp: ['http://pki.example/ocsp/devices'],
      caIssuers: ['http://pki.example/ca/devices.cer'],
    };
    const localCa = await openFileCa(
      { label: 'd', certificate: made.certificate, profile, file: { private_key: made.privateKey } },
      { now: Date.now, publication },
    );
    const der = await issue(localCa);
    const text = opensslText(
      ['x509', '-inform', 'DER', '-noout', '-ext', 'crlDistributionPoints,authorityInfoAccess'],
      der,
    );
    expect(text).toContain('URI:http://pki.example/crl/devices.crl');
    expect(text).toContain('OCSP - URI:http://pki.example/ocsp/devices');
    expect(text).toContain('CA Issuers - URI:http://pki.example/ca/devices.cer');
    expect(opensslVerify(der, made)).toMatch(/: OK\n$/);
  });
});

describe('validity', () => {
  const made = (): TestCa => ca('ec:P-256');
  const own = (): { notBefore: Date; notAfter: Date } => {
    const [certificate] = parsePemCertificates(readFileSync(made().certificate, 'utf8'));
    if (certificate === undefined) throw new Error('no certificate');
    return certificate;
  };

  test('is backdated a minute and lasts validity_days, both ends included', async () => {
    const now = own().notBefore.getTime() + 5 * DAY + 123;
    const { notBefore, notAfter } = parseCertificate(await issue(await openCa(made(), {}, () => now)));
    expect(notBefore.getTime()).toBe(now - 123 - 60_000);
    expect(notAfter.getTime()).toBe(now - 123 - 60_000 + 90 * DAY - 1000);
  });

  test('validity_seconds stand in place of the days, for short-lived certificates', async () => {
    const now = own().notBefore.getTime() + 5 * DAY;
    const short = await openCa(made(), { profile: { ...profile, validity_seconds: 600 } }, () => now);
    const { notBefore, notAfter } = parseCertificate(await issue(short));
    expect([notBefore.getTime() - now, notAfter.getTime() - now]).toEqual([-60_000, 539_000]);
  });

  test('validity_spread_seconds make it shorter by chance, never by more than half', async () => {
    const now = own().notBefore.getTime() + 5 * DAY;
    const spread = { ...profile, validity_seconds: 86_400, validity_spread_seconds: 1_000_000 };
    const fleet = await openCa(made(), { profile: spread }, () => now);
    const ends = await Promise.all(
      Array.from({ length: 12 }, async () => parseCertificate(await issue(fleet)).notAfter.getTime() - now + 61_000),
    );
    expect(ends.every((end) => end >= 43_200_000 && end <= 86_400_000)).toBe(true);
    expect(new Set(ends).size).toBeGreaterThan(1);
  });

  test.each([
    [0, 0],
    [3600, -3_600_000],
  ])('backdate_seconds = %d says since when it is valid', async (seconds, from) => {
    const now = own().notBefore.getTime() + 5 * DAY;
    const exact = await openCa(made(), { profile: { ...profile, backdate_seconds: seconds } }, () => now);
    const { notBefore, notAfter } = new x509.X509Certificate(await issue(exact));
    expect(notBefore.getTime() - now).toBe(from);
    expect(notAfter.getTime() - notBefore.getTime()).toBe(90 * DAY - 1000);
  });

  test('backdating and spread together leave a certificate that is still valid', async () => {
    const now = own().notBefore.getTime() + 5 * DAY;
    const short = { ...profile, validity_seconds: 120, validity_spread_seconds: 120, backdate_seconds: 60 };
    const localCa = await openCa(made(), { profile: short }, () => now);
    const issued = await Promise.all(Array.from({ length: 40 }, async () => parseCertificate(await issue(localCa))));
    for (const { notAfter } of issued) expect(notAfter.getTime() - now).toBeGreaterThanOrEqual(29_000);
  });

  test("never begins before the CA certificate's", async () => {
    const now = own().notBefore.getTime() + 1000;
    const certificate = parseCertificate(await issue(await openCa(made(), {}, () => now)));
    expect(certificate.notBefore).toEqual(own().notBefore);
  });

  test('never outlives the CA certificate', async () => {
    const now = own().notAfter.getTime() - 3 * DAY;
    const certificate = parseCertificate(await issue(await openCa(made(), {}, () => now)));
    expect(certificate.notAfter).toEqual(own().notAfter);
  });

  test.each([
    ['expired', () => own().notAfter.getTime()],
    ['not valid yet', () => own().notBefore.getTime() - 1000],
  ])('a CA whose certificate is %s signs nothing and is down', async (_, now) => {
    const localCa = await openCa(made(), {}, now);
    await expect(localCa.prepare(request())).rejects.toMatchObject({ status: 503, code: 'CA_NOT_VALID' });
    expect(await localCa.health()).toMatchObject({ health: 'down' });
    expect(await (await openCa(made())).health()).toEqual({ health: 'ok' });
  });

  test('RFC 5280 §4.1.2.5: a notAfter from 2050 on is GeneralizedTime', async () => {
    const long = ca('ec:P-256', 'long', { days: 36500 });
    const days = { ...profile, validity_days: 20_000, max_validity_days: 20_000 };
    const der = await issue(await openCa(long, { profile: days, chain: undefined }));
    expect(parseCertificate(der).notAfter.getUTCFullYear()).toBeGreaterThan(2050);
    expect(new X509Certificate(der).validToDate).toEqual(parseCertificate(der).notAfter);
    expect(opensslText(['asn1parse', '-inform', 'DER'], der)).toMatch(/GENERALIZEDTIME/);
  });
});

describe('names', () => {
  const everyKind: readonly GeneralName[] = [
    { kind: 'dns', value: 'a.example' },
    ipAddress('192.0.2.1'),
    ipAddress('2001:db8::7'),
    { kind: 'email', value: 'ops@a.example' },
    { kind: 'uri', value: 'urn:uuid:4b1a6a34-2d59-4a8f-9cc9-2d5f6d7a1c11' },
  ];

  test('RFC 5280 §4.2.1.6: SANs of every kind', async () => {
    const der = await issue(await openCa(ca('ec:P-256')), { subjectAltNames: everyKind });
    expect(opensslText(['x509', '-inform', 'DER', '-noout', '-ext', 'subjectAltName'], der)).toBe(
      'X509v3 Subject Alternative Name: \n    DNS:a.example, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:7, ' +
        'email:ops@a.example, URI:urn:uuid:4b1a6a34-2d59-4a8f-9cc9-2d5f6d7a1c11\n',
    );
  });

  test('RFC 5280 §4.2.1.6: subjectAltName is critical when the subject is empty', async () => {
    const made = ca('ec:P-256');
    const der = await issue(await openCa(made), { subject: EMPTY_NAME });
    expect(opensslText(['x509', '-inform', 'DER', '-noout', '-ext', 'subjectAltName'], der)).toContain('critical');
    expect(opensslVerify(der, made)).toMatch(/: OK\n$/);
  });

  test('a request that breaks a lint is refused with 400 and the rule', async () => {
    const localCa = await openCa(ca('ec:P-256'));
    await expect(localCa.prepare(request({ subject: EMPTY_NAME, subjectAltNames: [] }))).rejects.toMatchObject({
      status: 400,
      code: 'CERTIFICATE_LINT',
      message: 'The CA will not sign this certificate: an empty subject needs a subjectAltName (subject-or-san).',
    });
    await expect(localCa.prepare(request({ spki: localCa.certificate.spki }))).rejects.toMatchObject({
      status: 400,
      code: 'CERTIFICATE_LINT',
    });
    await expect(localCa.prepare(request({ spki: Buffer.from('nonsense') }))).rejects.toMatchObject({
      status: 400,
      code: 'PUBLIC_KEY_MALFORMED',
    });
  });
});

describe('signing', () => {
  const faulty = async (signBytes: (tbs: Buffer) => Promise<Buffer>): Promise<LocalCa> => {
    const good = await openCa(ca('ec:P-256'));
    const signer: Signer = {
      spki: good.signer.spki,
      signatureAlgorithm: good.signer.signatureAlgorithm,
      sign: signBytes,
    };
    return new LocalCa({ certificate: good.certificate, issuers: [], signer, profile, now: Date.now });
  };

  test.each<[string, (tbs: Buffer) => Promise<Buffer>]>([
    ['garbage', () => Promise.resolve(Buffer.from('garbage'))],
    ['an empty signature', () => Promise.resolve(Buffer.alloc(0))],
    ["another key's signature", (tbs) => Promise.resolve(sign('sha256', tbs, keyPair('ec:P-256', 'x').privateKey))],
    [
      'a signature over other bytes',
      () =>
        Promise.resolve(sign('sha256', Buffer.from('x'), createPrivateKey(readFileSync(ca('ec:P-256').privateKey)))),
    ],
    ['an exception', () => Promise.reject(new Error('token removed'))],
  ])('a signer that returns %s: 500, no certificate', async (_, signBytes) => {
    const prepared = await (await faulty(signBytes)).prepare(request());
    await expect(prepared.issue()).rejects.toMatchObject({ status: 500, code: 'CA_SIGNATURE_FAILED' });
  });

  test('the public text says what could not be signed', async () => {
    const broken = await faulty(() => Promise.reject(new Error('token removed')));
    const code = 'CA_SIGNATURE_FAILED';
    const certificate = (await broken.prepare(request())).issue();
    await expect(certificate).rejects.toMatchObject({ code, message: 'The CA could not sign the certificate.' });
    const list = broken.statusSigner.sign(Buffer.from('a list'));
    await expect(list).rejects.toMatchObject({ code, message: 'The CA could not sign its revocation data.' });
  });

  test('one preparation signs once', async () => {
    const prepared = await (await openCa(ca('ec:P-256'))).prepare(request());
    await prepared.issue();
    await expect(prepared.issue()).rejects.toMatchObject({ status: 500, code: 'ISSUED_TWICE' });
  });

  test('RFC 5280 §4.1.2.2: serial numbers are positive, 16 octets, and differ', async () => {
    const localCa = await openCa(ca('ec:P-256'));
    const serials = await Promise.all(
      Array.from({ length: 200 }, async () => (await localCa.prepare(request())).serial),
    );
    expect(new Set(serials).size).toBe(200);
    for (const serial of serials) expect(serial).toMatch(/^[4-7][0-9a-f]{31}$/);
  });
});

describe('what makes no CA is refused at start, with the key named', () => {
  const made = (): TestCa => ca('ec:P-256');
  const other = (): TestCa => ca('ed25519');
  const leaf = async (): Promise<string> => {
    const path = folder.file('not-a-ca.pem');
    writeFileSync(path, encodePem('CERTIFICATE', await issue(await openCa(made()))));
    return path;
  };
  const written = (name: string, text: string): string => {
    writeFileSync(folder.file(name), text);
    return folder.file(name);
  };

  test.each<[string, () => Promise<TestCa> | TestCa, RegExp]>([
    ['the key of another CA', () => ({ ...made(), privateKey: other().privateKey }), /private_key: is not the key of/],
    [
      'a chain of another CA',
      () => ({ ...made(), root: other().root }),
      /chain: .*not by the next certificate of the chain/,
    ],
    ['no CA certificate', async () => ({ ...made(), certificate: await leaf() }), /not a CA certificate/],
    ['a missing file', () => ({ ...made(), certificate: '/nonexistent' }), /certificate: .*there is no such file/],
    [
      'a key file without key',
      () => ({ ...made(), privateKey: made().certificate }),
      /contains no readable private key/,
    ],
    ['a certificate file without certificate', () => ({ ...made(), certificate: made().privateKey }), /no certificate/],
    [
      'a key with an unsupported curve',
      () => ({
        ...made(),
        privateKey: written(
          'k1.key',
          opensslText(['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:secp256k1']),
        ),
      }),
      /private_key: is not the key of/,
    ],
    [
      'an encrypted key',
      () => ({
        ...made(),
        privateKey: written(
          'encrypted.key',
          opensslText(['pkcs8', '-topk8', '-passout', 'pass:secret', '-in', made().privateKey]),
        ),
      }),
      /encrypted/,
    ],
    [
      'a broken key',
      () => ({ ...made(), privateKey: written('broken.key', encodePem('PRIVATE KEY', Buffer.from('nonsense'))) }),
      /contains no readable private key/,
    ],
    [
      'two keys in a file',
      () => ({
        ...made(),
        privateKey: written('two.key', readFileSync(made().privateKey, 'utf8') + pkcs8Pem(keyPair('ed25519', 'ca'))),
      }),
      /contains 2 private keys/,
    ],
  ])('%s', async (_, files_, message) => {
    const broken = await files_();
    await expect(openCa(broken)).rejects.toThrow(message);
    await expect(openCa(broken)).rejects.toThrow(/^ca "devices": /);
  });

  test('a key with an unsupported curve', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
    expect(() => new FileSigner(privateKey)).toThrow('not supported');
  });

  test('a chain that repeats the CA certificate is tolerated', async () => {
    const both = written('both.pem', readFileSync(made().certificate, 'utf8') + readFileSync(made().root, 'utf8'));
    const localCa = await openCa(made(), { chain: both });
    expect(localCa.chain().map((der) => parseCertificate(der).isCa)).toEqual([true, true]);
  });
});

describe('key files', () => {
  test.each([
    ['PKCS #8', ['pkcs8', '-topk8', '-nocrypt']],
    ['SEC 1', ['ec']],
    ['SEC 1 behind EC PARAMETERS', ['ec', '-param_enc', 'named_curve']],
  ])('%s', async (form, command) => {
    const made = ca('ec:P-256');
    const pem = opensslText([...command, '-in', made.privateKey]);
    const path = folder.file('form.key');
    writeFileSync(path, form.endsWith('PARAMETERS') ? opensslText(['ecparam', '-name', 'prime256v1']) + pem : pem);
    expect(opensslVerify(await issue(await openCa({ ...made, privateKey: path })), made)).toMatch(/: OK\n$/);
  });

  test('PKCS #1', async () => {
    const made = ca('rsa:2048');
    const path = folder.file('pkcs1.key');
    writeFileSync(path, opensslText(['rsa', '-traditional'], pkcs8Pem(keyPair('rsa:2048', 'ca'))));
    expect(readFileSync(path, 'utf8')).toContain('BEGIN RSA PRIVATE KEY');
    expect(opensslVerify(await issue(await openCa({ ...made, privateKey: path })), made)).toMatch(/: OK\n$/);
  });
});
