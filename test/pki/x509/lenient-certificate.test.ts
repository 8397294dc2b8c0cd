/** Certificates of others are read although they break rules of DER or RFC 5280, and in every container. */
import { sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  bitString,
  boolean,
  explicit,
  integer,
  NULL,
  oid,
  printableString,
  sequence,
  Tag,
  tlv,
} from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { certsOnly } from '../../../src/pki/cms/cms.ts';
import { isAnchor, isIssuedBy, parseCertificate, parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { parsePublicKey } from '../../../src/pki/x509/public-key.ts';
import { ALGORITHM, attribute, commonName, extension, makeKey, name } from '../../support/csr.ts';

const key = makeKey();
const rsa = makeKey('rsa2048');

const utcTime = (text: string): Buffer => tlv(Tag.UTC_TIME, Buffer.from(text));
const generalizedTime = (text: string): Buffer => tlv(Tag.GENERALIZED_TIME, Buffer.from(text));
const usage = (octets: string, critical = boolean(true)): Buffer =>
  extension(OID.keyUsage, tlv(Tag.BIT_STRING, Buffer.from(octets, 'hex')), critical);
const CONSTRAINTS = extension(OID.basicConstraints, sequence(boolean(true)), boolean(true));
const KEY_CERT_SIGN = usage('0106');

interface Parts {
  readonly version?: number;
  readonly serial?: Buffer;
  readonly notBefore?: Buffer;
  readonly notAfter?: Buffer;
  readonly subject?: Buffer;
  readonly inside?: Buffer;
  readonly outside?: Buffer;
  readonly extensions?: readonly Buffer[];
}

/** Self-signed. */
function certificate(parts: Parts = {}): Buffer {
  const { version = 2, extensions = [CONSTRAINTS, KEY_CERT_SIGN], subject = commonName('CA') } = parts;
  const { inside = ALGORITHM.ecdsaSha256, outside = inside } = parts;
  const tbs = sequence(
    ...(version === 0 ? [] : [explicit(0, integer(version))]),
    ...[parts.serial ?? integer(5), inside, subject],
    sequence(parts.notBefore ?? utcTime('250101000000Z'), parts.notAfter ?? utcTime('450101000000Z')),
    ...[subject, key.spki],
    ...(extensions.length === 0 ? [] : [explicit(3, sequence(...extensions))]),
  );
  return sequence(tbs, outside, bitString(sign('sha256', tbs, key.privateKey)));
}

const WITH_NULL = sequence(oid(OID.ecdsaWithSHA256), NULL);

describe('a trust anchor is read and verifies certificates', () => {
  test.each<[string, Parts]>([
    ['of version 1', { version: 0, extensions: [] }],
    ['of version 2', { version: 1, extensions: [] }],
    ['a serial number that is negative', { serial: integer(-5) }],
    ['a serial number of 30 octets', { serial: integer(Buffer.alloc(30, 0x11)) }],
    ['a key usage with unused bits', { extensions: [CONSTRAINTS, usage('0107')] }],
    ['a key usage with zero bits at its end', { extensions: [CONSTRAINTS, usage('000600')] }],
    [
      'TRUE as 0x01, in a value and as criticality',
      {
        extensions: [
          extension(OID.basicConstraints, sequence(tlv(Tag.BOOLEAN, Buffer.of(1))), boolean(true)),
          usage('0106', tlv(Tag.BOOLEAN, Buffer.of(1))),
        ],
      },
    ],
    ['an empty subjectAltName', { extensions: [CONSTRAINTS, extension(OID.subjectAltName, sequence())] }],
    ['an empty extKeyUsage', { extensions: [CONSTRAINTS, extension(OID.extKeyUsage, sequence())] }],
    ['an unknown extension of garbage', { extensions: [CONSTRAINTS, extension('1.2.3.4', Buffer.from('?'))] }],
    ['NULL in the inner algorithm only', { inside: WITH_NULL, outside: ALGORITHM.ecdsaSha256 }],
    ['NULL in the outer algorithm only', { outside: WITH_NULL }],
    [
      'a name with a character that its type cannot hold',
      { subject: name(attribute('2.5.4.3', printableString('A&B_*@'))) },
    ],
  ])('%s', async (_, parts) => {
    const parsed = parseCertificate(certificate(parts));
    expect(isAnchor(parsed)).toBe(true);
    expect(await isIssuedBy(parsed, parsed)).toBe(true);
  });

  test('other algorithms inside and outside are refused', () => {
    const outside = sequence(oid(OID.ecdsaWithSHA384));
    expect(() => parseCertificate(certificate({ outside }))).toThrow('inside and outside differ');
  });
});

describe('times of others', () => {
  test.each([
    ['UTCTime without seconds', utcTime('2501020304Z'), '2025-01-02T03:04:00.000Z'],
    ['UTCTime east of Greenwich', utcTime('250102030405+0130'), '2025-01-02T01:34:05.000Z'],
    ['UTCTime west of it, without seconds', utcTime('2501020304-0500'), '2025-01-02T08:04:00.000Z'],
    ['UTCTime of the last century', utcTime('500101000000Z'), '1950-01-01T00:00:00.000Z'],
    ['a fraction', generalizedTime('20250102030405.678Z'), '2025-01-02T03:04:05.000Z'],
    ['a fraction after a comma', generalizedTime('20250102030405,6Z'), '2025-01-02T03:04:05.000Z'],
    ['GeneralizedTime in another zone', generalizedTime('20250102030405-0030'), '2025-01-02T03:34:05.000Z'],
  ])('%s', (_, notBefore, expected) => {
    expect(parseCertificate(certificate({ notBefore })).notBefore.toISOString()).toBe(expected);
  });

  test('year 9999', () => {
    const { notAfter } = parseCertificate(certificate({ notAfter: generalizedTime('99991231235959Z') }));
    expect(notAfter.toISOString()).toBe('9999-12-31T23:59:59.000Z');
  });

  test.each(['250102030405', '250102Z', '251302030405Z', '250230030405Z', '20250102030405Z', '250102030405+01', ''])(
    'UTCTime %j is refused',
    (text) => {
      expect(() => parseCertificate(certificate({ notBefore: utcTime(text) }))).toThrow('notBefore');
    },
  );
});

test('an RSA key without NULL parameters is the same key, and is certified with them', () => {
  const algorithm = sequence(oid(OID.rsaEncryption), NULL);
  const without = sequence(
    sequence(oid(OID.rsaEncryption)),
    rsa.spki.subarray(rsa.spki.indexOf(algorithm) + algorithm.length),
  );
  expect(parsePublicKey(without)).toMatchObject({ keyType: 'rsa:2048', spki: rsa.spki });
});

describe('certificates in files of others', () => {
  const [one, two] = [certificate(), certificate({ serial: integer(6) })];
  const read = (text: string): number[] => parsePemCertificates(text).map(({ serialNumber }) => Number(serialNumber));

  test.each<[string, string]>([
    [
      'PEM with text around it, CR LF, and a byte order mark',
      `\ufeffs:/CN=CA\r\n${encodePem('CERTIFICATE', one)}\nmore\n${encodePem('X509 CERTIFICATE', two)}`.replaceAll(
        '\n',
        '\r\n',
      ),
    ],
    [
      'blocks on one line',
      (encodePem('CERTIFICATE', one) + encodePem('CERTIFICATE', two)).replaceAll('-----\n-----', '----------'),
    ],
    [
      'OpenSSL with trust settings',
      encodePem('TRUSTED CERTIFICATE', Buffer.concat([one, sequence(sequence(oid(OID.extKeyUsage)))])) +
        encodePem('CERTIFICATE', two),
    ],
    ['PKCS #7', encodePem('PKCS7', certsOnly([one, two]))],
    ['PKCS #7 as Windows writes it', encodePem('CERTIFICATE', certsOnly([one, two]))],
    ['PKCS #7 in BER', encodePem('CMS', indefinite(certsOnly([one, two])))],
    ['BER', encodePem('CERTIFICATE', indefinite(one)) + encodePem('CERTIFICATE', two)],
  ])('%s', (_, text) => {
    expect(read(text)).toEqual([5, 6]);
  });

  test.each<[string, Buffer]>([
    ['a number', integer(1)],
    ['an empty SEQUENCE', sequence()],
    ['half a certificate', one.subarray(0, 100)],
  ])('%s is named by the number of its block', (_, der) => {
    const text = encodePem('CERTIFICATE', one) + encodePem('CERTIFICATE', der);
    expect(() => read(text)).toThrow('certificate 2 cannot be read');
  });
});

/** The outermost element with an indefinite length. */
function indefinite(der: Buffer): Buffer {
  const content = parseContent(der);
  return Buffer.concat([Buffer.of(0x30, 0x80), content, Buffer.alloc(2)]);
}

const parseContent = (der: Buffer): Buffer => der.subarray((der.readUInt8(1) & 0x7f) + 2);
