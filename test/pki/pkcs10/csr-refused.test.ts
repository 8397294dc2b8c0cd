/** Invalid requests: each is rejected with 400 and its own code, never with another class of exception. */
import { describe, expect, test } from 'vitest';
import { EstuaryError } from '../../../src/errors.ts';
import { parseCsr, verifyCsr } from '../../../src/pki/pkcs10/csr.ts';
import {
  NULL,
  boolean,
  ia5String,
  integer,
  oid,
  printableString,
  sequence,
  setOf,
  utf8String,
} from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import {
  attribute,
  commonName,
  csrAttribute,
  dns,
  ecSpki,
  extension,
  extensionRequest,
  san,
} from '../../support/csr.ts';
import {
  csr,
  p256,
  PARSED,
  point,
  rsaCsr,
  type Table,
  VERIFIED,
  withExtensions,
  withSan,
  withSubject,
} from './refused-csrs.ts';

const rows = (table: Table) =>
  Object.entries(table).flatMap(([code, cases]) =>
    Object.entries(cases).map(([what, der]) => [code, what, der] as const),
  );

function thrown(der: Buffer): unknown {
  try {
    parseCsr(der);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('RFC 2986: a malformed request is 400 with its code', () => {
  test.each(rows(PARSED))('%s: %s', (code, _, der) => {
    const error = thrown(der);
    expect(error).toBeInstanceOf(EstuaryError);
    expect(error).toMatchObject({ status: 400, code, message: expect.stringMatching(/^The CSR.*\.$/) as string });
  });

  test.each(rows(VERIFIED))('%s: %s', async (code, _, der) => {
    await expect(verifyCsr(parseCsr(der))).rejects.toBeInstanceOf(EstuaryError);
    await expect(verifyCsr(parseCsr(der))).rejects.toMatchObject({ status: 400, code });
  });

  test('a DNS name beyond ASCII, in Latin-1 or UTF-8, gets a sentence that says what to write', () => {
    for (const text of ['b\xfccher.example', Buffer.from('bücher.example').toString('latin1')])
      expect(thrown(withSan(dns(text)))).toMatchObject({
        message: expect.stringMatching(
          / at position 2, .*internationalized names are written in A-labels \(xn--…\)\.$/,
        ) as string,
      });
  });

  test('a type twice in one RDN, and too large a subject, are named', () => {
    const twice = setOf(attribute(OID.commonName, utf8String('a')), attribute(OID.commonName, utf8String('b')));
    expect(thrown(csr({ subject: sequence(twice) }))).toMatchObject({
      message: "The CSR's subject has CN more than once in one RDN.",
    });
  });

  test('no octet of the request stands in the sentence unescaped', () => {
    expect(thrown(withSan(dns('a\nb\u0007')))).toMatchObject({
      message:
        "The CSR's subjectAltName DNS:a?b? contains U+000A at position 2, which is not a letter, digit or hyphen; internationalized names are written in A-labels (xn--…).",
    });
    expect(thrown(withSan(dns('x'.repeat(300))))).toMatchObject({
      message: `The CSR's subjectAltName DNS:${'x'.repeat(76)}… is longer than 253 characters.`,
    });
  });
});

describe('what is tolerated', () => {
  const verify = async (der: Buffer) => verifyCsr(parseCsr(der));

  test('RFC 2986 §4.1 makes the attributes mandatory; their absence is tolerated', async () => {
    expect((await verify(csr({ attributes: null }))).attributes).toEqual([]);
    expect((await verify(csr({ attributes: [] }))).attributes).toEqual([]);
  });

  test('an empty extensionRequest, in either form, and ECDSA with NULL, as OpenSSL and NSS have them', async () => {
    expect((await verify(withExtensions())).extensions).toEqual([]);
    const attributes = [csrAttribute(OID.microsoftExtensionRequest, sequence())];
    expect((await verify(csr({ attributes }))).extensions).toEqual([]);
    const nss = await verify(csr({ algorithm: sequence(oid(OID.ecdsaWithSHA256), NULL) }));
    expect(nss.signatureAlgorithm.name).toBe('ecdsaWithSHA256');
  });

  test('64 attributes, and a type twice in different RDNs', async () => {
    const units = Array.from({ length: 64 }, (_, i) => attribute(OID.organizationalUnitName, utf8String(`${i}`)));
    expect((await verify(withSubject(...units))).subject.rdns).toHaveLength(64);
  });

  test("extensions under Microsoft's OID", async () => {
    const attributes = [csrAttribute(OID.microsoftExtensionRequest, sequence(san(dns('a.example'))))];
    expect((await verify(csr({ attributes }))).subjectAltNames).toEqual([{ kind: 'dns', value: 'a.example' }]);
  });

  test('an explicit critical FALSE', async () => {
    const { extensions } = await verify(withExtensions(extension(OID.keyUsage, NULL, boolean(false))));
    expect(extensions).toEqual([{ oid: OID.keyUsage, critical: false, value: NULL }]);
  });

  test('a compressed point (RFC 5480 §2.2)', async () => {
    const compressed = Buffer.concat([Buffer.from([2 + (point.readUInt8(64) & 1)]), point.subarray(1, 33)]);
    expect((await verify(csr({ spki: ecSpki(p256, compressed) }))).publicKey.keyType).toBe('ec:P-256');
  });

  test('RSA without NULL (RFC 4055 §5), and unknown attributes and extensions', async () => {
    await verify(rsaCsr({ algorithm: sequence(oid(OID.sha256WithRSAEncryption)) }));
    const read = await verify(
      csr({ attributes: [csrAttribute('1.2.3.4', NULL, integer(1)), extensionRequest(extension('1.2.3', NULL))] }),
    );
    expect(read.attributes.map(({ values }) => values.length)).toEqual([2, 1]);
    expect(read.extensions).toEqual([{ oid: '1.2.3', critical: false, value: NULL }]);
  });

  test.each([
    ['PrintableString', printableString('abc')],
    ['UTF8String', utf8String('abc')],
    ['IA5String, as older clients send it', ia5String('abc')],
  ])('a challengePassword in %s', async (_, value) => {
    const read = await verify(csr({ attributes: [csrAttribute(OID.challengePassword, value)] }));
    expect(read.challengePassword).toBe('abc');
  });

  test('no subject', async () => {
    expect((await verify(csr({ subject: sequence() }))).subject.rdns).toEqual([]);
    expect((await verify(csr({ subject: commonName('x') }))).subject.rdns).toHaveLength(1);
  });
});
