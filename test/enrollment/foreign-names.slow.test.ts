/**
 * Names that other software wrote: every string type and odd characters, certified by openssl with a foreign CA. They are
 * readable, comparable and renewable, and what Estuary issues has the string types of RFC 5280.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { Ca } from '../../src/ca/router.ts';
import type { Enrolled } from '../../src/enrollment/enrollment.ts';
import { EstuaryError } from '../../src/errors.ts';
import { sequence, Tag, tlv, utf8String } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCsr } from '../../src/pki/pkcs10/csr.ts';
import { type Certificate, parseCertificate, parsePemCertificates, pemOf } from '../../src/pki/x509/certificate.ts';
import { comparableName, namesEqual } from '../../src/pki/x509/name.ts';
import { attribute, buildCsr, commonName, makeKey, name } from '../support/csr.ts';
import { mtlsIdentity, pipeline, received, storeWithCa } from './support.ts';

const { folder, store, devices } = await storeWithCa();
const key = makeKey();
let old: Certificate;
let renewing: Ca;

beforeAll(() => {
  // RFC 5280 §7.1: "&" is outside of a PrintableString's alphabet, and some CAs write it all the same.
  const request = folder.file('old.csr');
  const ca = makeKey();
  writeFileSync(folder.file('old.key'), ca.pem);
  writeFileSync(request, buildCsr(ca, { subject: name(attribute(OID.commonName, printable('Smith & Sons'))) }));
  writeFileSync(folder.file('ca.ext'), 'basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\n');
  x509(
    '-req',
    '-in',
    request,
    '-inform',
    'DER',
    '-key',
    folder.file('old.key'),
    '-days',
    '3000',
    '-extfile',
    folder.file('ca.ext'),
    '-out',
    folder.file('old.pem'),
  );
  [old] = parsePemCertificates(readFileSync(folder.file('old.pem'), 'latin1')) as [Certificate];
  renewing = new Ca(devices.config, devices.driver, { renewalIssuers: [old] });
  writeFileSync(folder.file('chain.pem'), pemOf([devices.certificate]));
  writeFileSync(folder.file('root.pem'), readFileSync(devices.config.chain ?? ''));
});

const printable = (text: string): Buffer => tlv(Tag.PRINTABLE_STRING, Buffer.from(text, 'latin1'));
const x509 = (...args: string[]): Buffer => execFileSync('openssl', ['x509', ...args], { stdio: 'pipe' });

/** A certificate of the foreign CA for this subject, in exactly this encoding. */
function certified(subject: Buffer): Certificate {
  writeFileSync(folder.file('device.csr'), buildCsr(key, { subject }));
  x509(
    '-req',
    '-in',
    folder.file('device.csr'),
    '-inform',
    'DER',
    '-CA',
    folder.file('old.pem'),
    '-CAkey',
    folder.file('old.key'),
    '-set_serial',
    '77',
    '-days',
    '90',
    '-outform',
    'DER',
    '-out',
    folder.file('device.der'),
  );
  const certificate = parseCertificate(readFileSync(folder.file('device.der')));
  expect(certificate.subject.der).toEqual(subject);
  return certificate;
}

function enroll(operation: 'simpleenroll' | 'simplereenroll', subject: Buffer, holder: Certificate): Promise<Enrolled> {
  const identity = mtlsIdentity(holder, old);
  const csr = buildCsr(key, { subject });
  return pipeline({ store, identity, now: Date.now }).enroll(received(renewing, csr, { operation }));
}

async function issued(enrolled: Promise<Enrolled>): Promise<Certificate> {
  const { outcome } = await enrolled;
  if (outcome.status !== 'issued') throw new Error(outcome.status);
  return parseCertificate(outcome.certificate);
}

const FIXED: ReadonlyMap<string, number> = new Map<string, number>([
  [OID.countryName, Tag.PRINTABLE_STRING],
  [OID.serialNumber, Tag.PRINTABLE_STRING],
  [OID.dnQualifier, Tag.PRINTABLE_STRING],
  [OID.emailAddress, Tag.IA5_STRING],
  [OID.domainComponent, Tag.IA5_STRING],
]);

const LATIN: readonly number[] = [Tag.PRINTABLE_STRING, Tag.TELETEX_STRING, Tag.IA5_STRING, Tag.NUMERIC_STRING];
const wide = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
const fourOctets = (text: string): Buffer =>
  Buffer.concat(Array.from(text, (character) => Buffer.from([0, 0, ...wide(character)])));
const ENCODINGS: readonly ((text: string) => Buffer)[] = [
  ...LATIN.map((tag) => (text: string) => tlv(tag, Buffer.from(text, 'latin1'))),
  utf8String,
  (text) => tlv(Tag.BMP_STRING, wide(text)),
  (text) => tlv(Tag.UNIVERSAL_STRING, fourOctets(text)),
];

const value = (characters: string) =>
  fc.array(fc.constantFrom(...Array.from(characters)), { minLength: 0, maxLength: 8 }).map((all) => all.join(''));
const odd = value("abcXYZ019 _&@*'()+,-./:=?!#$%;<>[]^`{|}~é\u00fc\u00df");
const plain = value("abcXYZ019 '()+,-./:=?");
const ascii = value('abcXYZ019_&@*-.');
const one = fc.oneof(
  fc.record({
    type: fc.constantFrom(
      OID.commonName,
      OID.organizationName,
      OID.organizationalUnitName,
      OID.localityName,
      OID.userId,
      OID.unstructuredName,
      OID.title,
    ),
    text: odd,
  }),
  fc.record({ type: fc.constant(OID.countryName), text: fc.constantFrom('DE', 'us', '') }),
  fc.record({ type: fc.constantFrom(OID.serialNumber, OID.dnQualifier), text: plain }),
  fc.record({ type: fc.constant(OID.domainComponent), text: ascii }),
  fc.record({ type: fc.constant(OID.emailAddress), text: fc.constantFrom('a_&b@c.example', '') }),
);
const attributes = fc.tuple(one, fc.constantFrom(...ENCODINGS)).map(([{ type, text }, encode]) => ({
  type,
  text,
  der: attribute(type, encode(text)),
}));
/** RDNs with distinct types, in any order. */
const rdns = fc.array(fc.uniqueArray(attributes, { minLength: 1, maxLength: 3, selector: ({ type }) => type }), {
  minLength: 1,
  maxLength: 3,
});

describe('a name that other software wrote', () => {
  test('is read, compared by its text, renewed, and issued with the string types of RFC 5280', async () => {
    await fc.assert(
      fc.asyncProperty(rdns, async (given) => {
        const subject = sequence(
          commonName('device').subarray(2),
          ...given.map((rdn) => tlv(Tag.SET, ...rdn.map(({ der }) => der))),
        );
        const holder = certified(subject);
        expect(holder.subject.rdns.flat().map(({ text }) => text)).toEqual([
          'device',
          ...given.flat().map(({ text }) => text),
        ]);
        const renewed = await issued(enroll('simplereenroll', subject, holder));
        expect(namesEqual(renewed.subject, holder.subject)).toBe(true);
        expect(comparableName(renewed.subject)).toBe(comparableName(holder.subject));
        for (const { type, tag, text, value: der } of renewed.subject.rdns.flat()) {
          expect(text).not.toBe('');
          const isPrintable = /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text);
          if (FIXED.has(type)) expect(tag).toBe(FIXED.get(type));
          else expect(isPrintable ? [Tag.UTF8_STRING, Tag.PRINTABLE_STRING] : [Tag.UTF8_STRING]).toContain(tag);
          expect(der.subarray(2).toString(tag === Tag.UTF8_STRING ? 'utf8' : 'latin1')).toBe(text);
        }
        // The new certificate renews itself, with its own encoding and with that of the old one.
        for (const again of [renewed.subject.der, subject])
          expect((await issued(enroll('simplereenroll', again, holder))).subject.der).toEqual(renewed.subject.der);
        writeFileSync(folder.file('new.pem'), pemOf([renewed]));
        execFileSync(
          'openssl',
          [
            'verify',
            '-x509_strict',
            '-CAfile',
            folder.file('root.pem'),
            '-untrusted',
            folder.file('chain.pem'),
            folder.file('new.pem'),
          ],
          { stdio: 'pipe' },
        );
      }),
      { numRuns: 40, seed: 7 },
    );
  });

  test('an empty value gets 400 where the request renews nothing', async () => {
    const subject = name(attribute(OID.organizationName, utf8String('')), attribute(OID.commonName, utf8String('a')));
    await expect(enroll('simpleenroll', subject, certified(subject))).rejects.toMatchObject({
      status: 400,
      message: "The CSR's subject has an empty O.",
    });
  });

  test.each([
    [OID.serialNumber, 'ab_c', 'serialNumber with "_" at position 3, which a PrintableString cannot hold'],
    [OID.dnQualifier, 'é', 'dnQualifier with "é" (U+00E9) at position 1, which a PrintableString cannot hold'],
    [OID.countryName, 'D*', 'C with "*" at position 2, which a PrintableString cannot hold'],
    [OID.domainComponent, 'aü', 'DC with "ü" (U+00FC) at position 2, which an IA5String cannot hold'],
    [OID.emailAddress, 'ü@a', 'emailAddress with "ü" (U+00FC) at position 1, which an IA5String cannot hold'],
  ])(
    'a value that its type cannot hold gets 400 with the attribute and the character: %s %s',
    (type, text, message) => {
      const csr = buildCsr(key, { subject: name(attribute(type, utf8String(text))) });
      expect(() => parseCsr(csr)).toThrow(
        expect.objectContaining({ status: 400, message: `The CSR's subject has a ${message}.` }) as EstuaryError,
      );
    },
  );
});
