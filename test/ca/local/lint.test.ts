/**
 * What each lint accepts and rejects.
 *
 * Longer than other files: the lints are one table, on one set of certificates.
 */
import { readFileSync } from 'node:fs';

import { afterAll, describe, expect, test } from 'vitest';

import { LINT_RULES, lint, type LintContext } from '../../../src/ca/local/lint.ts';
import { parsePemCertificates, type Certificate } from '../../../src/pki/x509/certificate.ts';
import {
  NULL,
  Tag,
  boolean,
  explicit,
  generalizedTime,
  integer,
  octetString,
  oid,
  printableString,
  sequence,
  setOf,
  time,
  tlv,
  utf8String,
} from '../../../src/pki/der/der.ts';
import {
  encodeAuthorityInfoAccess,
  encodeAuthorityKeyIdentifier,
  encodeBasicConstraints,
  encodeCrlDistributionPoints,
  encodeExtKeyUsage,
  encodeExtension,
  encodeKeyUsage,
  encodeCertificatePolicies,
  type CertificatePolicy,
} from '../../../src/pki/x509/extensions.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodeNameConstraints } from '../../../src/pki/x509/name-constraints.ts';
import { parsePublicKey, subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';
import { SIGNATURE_ALGORITHMS } from '../../../src/pki/x509/signature-algorithms.ts';
import { makeCa } from '../../support/ca.ts';
import { attribute, commonName, country, dns, ecSpki, email, ip, makeKey, name, uri } from '../../support/csr.ts';
import { temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

function issuer(caName: string, extensions: readonly string[] = []): Certificate {
  const made = makeCa(folder.file, caName, { kind: 'ec:P-256', extensions });
  const [certificate] = parsePemCertificates(readFileSync(made.certificate, 'utf8'));
  if (certificate === undefined) throw new Error('no certificate');
  return certificate;
}

const plainCa = issuer('plain');
const constrainedCa = issuer('constrained', [
  'extendedKeyUsage=clientAuth',
  'nameConstraints=critical,@nc\n[nc]\npermitted;DNS.0=devices.example\nexcluded;DNS.0=admin.devices.example',
  'permitted;IP.0=10.0.0.0/255.0.0.0\npermitted;email.0=.mail.example\npermitted;URI.0=.web.example',
  'permitted;dirName.0=base\n[base]\nO=Example',
]);

const DAY = 86_400_000;
const from = new Date(plainCa.notBefore.getTime() + DAY);
const until = (days: number): Date => new Date(from.getTime() + days * DAY - 1000);
const key = makeKey();
/** A P-256 key with its point in the other form (RFC 5480 §2.2). */
const compressed = (spki: Buffer): Buffer => {
  const point = spki.subarray(-65);
  const short = Buffer.concat([Buffer.from([2 + (point.readUInt8(64) & 1)]), point.subarray(1, 33)]);
  return ecSpki(oid(OID.secp256r1), short);
};
const ecdsa = SIGNATURE_ALGORITHMS.ecdsaWithSHA256.der;

type Extensions = Record<string, Buffer | undefined>;
interface Parts {
  version?: Buffer;
  serial?: Buffer;
  algorithm?: Buffer;
  issuer?: Buffer;
  validity?: Buffer;
  subject?: Buffer;
  spki?: Buffer;
  /** DER Extension by OID; undefined leaves one of the usual ones out. */
  extensions?: Extensions;
  more?: readonly Buffer[];
  trailer?: Buffer;
}

const ext = (id: string, value: Buffer, critical = false): Buffer => encodeExtension({ oid: id, critical, value });
const san = (critical: boolean, ...names: Buffer[]): Extensions => ({
  [OID.subjectAltName]: ext(OID.subjectAltName, sequence(...names), critical),
});
const policies = (...list: CertificatePolicy[]): Buffer =>
  ext(OID.certificatePolicies, encodeCertificatePolicies(list));
const usage = (...usages: Parameters<typeof encodeKeyUsage>[0]): Extensions => ({
  [OID.keyUsage]: ext(OID.keyUsage, encodeKeyUsage(usages), true),
});

/** A TBSCertificate that breaks no rule, with parts replaced. */
function tbs(parts: Parts = {}, ca: Certificate = plainCa): Buffer {
  const spki = parts.spki ?? key.spki;
  const identifier = spki.length > 2 ? subjectKeyIdentifier(spki) : Buffer.alloc(20);
  const extensions: Extensions = {
    [OID.basicConstraints]: ext(
      OID.basicConstraints,
      encodeBasicConstraints({ ca: false, pathLength: undefined }),
      true,
    ),
    ...usage('digitalSignature'),
    [OID.extKeyUsage]: ext(OID.extKeyUsage, encodeExtKeyUsage([OID.clientAuth])),
    [OID.subjectKeyIdentifier]: ext(OID.subjectKeyIdentifier, octetString(identifier)),
    [OID.authorityKeyIdentifier]: ext(
      OID.authorityKeyIdentifier,
      encodeAuthorityKeyIdentifier(ca.subjectKeyIdentifier ?? Buffer.alloc(0)),
    ),
    ...parts.extensions,
  };
  const list = Object.values(extensions).filter((extension) => extension !== undefined);
  return sequence(
    parts.version ?? explicit(0, integer(2)),
    parts.serial ?? integer(Buffer.alloc(16, 0x55)),
    parts.algorithm ?? ecdsa,
    parts.issuer ?? ca.subject.der,
    parts.validity ?? sequence(time(from), time(until(90))),
    parts.subject ?? commonName('device 1'),
    spki,
    explicit(3, sequence(...list, ...(parts.more ?? []))),
    parts.trailer ?? Buffer.alloc(0),
  );
}

const context = (ca: Certificate): LintContext => ({ issuer: ca, signatureAlgorithm: ecdsa, maxValidityDays: 397 });
const rulesBroken = (parts: Parts, ca: Certificate = plainCa): string[] =>
  lint(tbs(parts, ca), context(ca)).findings.map(({ rule }) => rule);

const subject = (type: string, value: Buffer): Parts => ({ subject: name(attribute(type, value)) });
const validity = (...times: Buffer[]): Parts => ({ validity: sequence(...times) });
const weakKey = makeKey('rsa1024');

/** Rule → TBSCertificates that break it. */
const BROKEN: Readonly<Record<string, Readonly<Record<string, Parts>>>> = {
  version: {
    'version 1 (absent)': { version: Buffer.alloc(0) },
    'version 2': { version: explicit(0, integer(1)) },
  },
  'serial-number': {
    zero: { serial: integer(0) },
    negative: { serial: tlv(Tag.INTEGER, Buffer.alloc(16, 0x85)) },
    '21 octets': { serial: integer(Buffer.alloc(21, 1)) },
    'too few bits': { serial: integer(123456) },
  },
  'signature-algorithm': {
    'another inside than outside': { algorithm: SIGNATURE_ALGORITHMS.ecdsaWithSHA384.der },
    'one of another key': { algorithm: SIGNATURE_ALGORITHMS.sha256WithRSAEncryption.der },
  },
  'issuer-name': {
    'another name': { issuer: commonName('somebody else') },
    'the same text in another string type': {
      issuer: name(
        attribute(OID.organizationName, printableString('Estuary')),
        attribute(OID.commonName, printableString('plain')),
      ),
    },
    empty: { issuer: sequence() },
  },
  'validity-encoding': {
    'GeneralizedTime before 2050': validity(generalizedTime(from), time(until(90))),
    'a fraction of a second': validity(tlv(Tag.GENERALIZED_TIME, Buffer.from('20300101000000.5Z')), time(until(90))),
    'a time without seconds': validity(tlv(Tag.UTC_TIME, Buffer.from('3001010000Z')), time(until(90))),
    'a time in another zone': validity(tlv(Tag.UTC_TIME, Buffer.from('300101000000+0100')), time(until(90))),
  },
  'validity-order': {
    reversed: validity(time(until(90)), time(from)),
    empty: validity(time(from), time(from)),
  },
  'validity-within-ca': {
    'begins before the CA': validity(time(new Date(plainCa.notBefore.getTime() - 1000)), time(until(90))),
    'outlives the CA': validity(time(from), time(new Date(plainCa.notAfter.getTime() + 1000))),
  },
  'validity-period': {
    'a second too long': validity(time(from), time(new Date(until(397).getTime() + 1000))),
  },
  'subject-attributes': {
    'a CN of 65 characters': subject(OID.commonName, utf8String('x'.repeat(65))),
    'an O of 65 characters': subject(OID.organizationName, utf8String('ö'.repeat(65))),
    'a serialNumber of 65 characters': subject(OID.serialNumber, printableString('x'.repeat(65))),
    'a country of three letters': { subject: name(country('DEU')) },
    'a country of digits': { subject: name(country('12')) },
    'a country in UTF8String': subject(OID.countryName, utf8String('DE')),
    'an email in UTF8String': subject(OID.emailAddress, utf8String('a@b.example')),
    'an empty CN': subject(OID.commonName, utf8String('')),
    'a NUL': subject(OID.commonName, utf8String('a\0b')),
    'a control character': subject(OID.commonName, utf8String('a\u0085b')),
    'a type twice in one RDN': {
      subject: sequence(setOf(attribute(OID.commonName, utf8String('a')), attribute(OID.commonName, utf8String('b')))),
    },
    '65 attributes': {
      subject: name(...Array.from({ length: 65 }, (_, i) => attribute(OID.organizationName, utf8String(`${i}`)))),
    },
    'an override of the direction': subject(OID.commonName, utf8String('a\u202eb')),
    'a CN that is no string': subject(OID.commonName, integer(5)),
    'half a surrogate pair': subject(OID.commonName, tlv(Tag.BMP_STRING, Buffer.from([0xd8, 0x00]))),
    'an RDN that is not in DER order': {
      subject: sequence(
        tlv(Tag.SET, attribute(OID.organizationName, utf8String('a')), attribute(OID.commonName, utf8String('a'))),
      ),
    },
  },
  'subject-or-san': {
    neither: { subject: sequence() },
    'an empty subject with a SAN that is not critical': {
      subject: sequence(),
      extensions: san(false, dns('a.example')),
    },
    'a critical SAN with a subject': { extensions: san(true, dns('a.example')) },
  },
  'subject-is-not-issuer': {
    "the CA's subject": { subject: plainCa.subject.der },
    "the CA's subject in other case and with more space": {
      subject: name(
        ...plainCa.subject.rdns.flat().map(({ type, text }) => attribute(type, utf8String(` ${text.toUpperCase()}`))),
      ),
    },
  },
  'san-form': {
    'an empty list': { extensions: san(false) },
    'an underscore': { extensions: san(false, dns('a_b.example')) },
    'an empty label': { extensions: san(false, dns('a..example')) },
    'a trailing dot': { extensions: san(false, dns('a.example.')) },
    'a NUL': { extensions: san(false, dns('a\0.example')) },
    '254 characters': { extensions: san(false, dns(`${'a.'.repeat(126)}ab`)) },
    'a label of 64 characters': { extensions: san(false, dns('a'.repeat(64))) },
    'a wildcard inside of a label': { extensions: san(false, dns('a*.b.example')) },
    'a wildcard below nothing': { extensions: san(false, dns('*.example')) },
    'an address of 5 octets': { extensions: san(false, ip(1, 2, 3, 4, 5)) },
    'an address with a mask': { extensions: san(false, ip(1, 2, 3, 4, 255, 0, 0, 0)) },
    'an email without domain': { extensions: san(false, email('a@')) },
    'an email with a name': { extensions: san(false, email('A <a@b.example>')) },
    'a relative URI': { extensions: san(false, uri('/path')) },
    'a URI without host': { extensions: san(false, uri('http:///path')) },
    'a URI with a space': { extensions: san(false, uri('http://a.example/a b')) },
    'a directoryName': { extensions: san(false, explicit(4, commonName('x'))) },
  },
  'public-key': {
    "the CA's own": { spki: plainCa.spki },
    "the CA's own, its point compressed": { spki: compressed(plainCa.spki) },
    'RSA of 1024 bits': { spki: weakKey.spki, extensions: usage('digitalSignature') },
    'an unknown curve': { spki: makeKey('secp256k1').spki },
    DSA: { spki: makeKey('dsa').spki },
  },
  'no-duplicate-extensions': {
    'extKeyUsage twice': { more: [ext(OID.extKeyUsage, encodeExtKeyUsage([OID.clientAuth]))] },
  },
  'certificate-policies': {
    'no policy': { more: [ext(OID.certificatePolicies, sequence())] },
    'a policy twice': { more: [policies({ oid: '1.2.3' }, { oid: '1.2.3' })] },
    'a CPS that is no URI': { more: [policies({ oid: '1.2.3', cps: 'cps' })] },
  },
  'profile-extensions': {
    'two values': { more: [ext('1.2.3.4', Buffer.concat([NULL, NULL]))] },
    'a value that is broken within': { more: [ext('1.2.3.4', sequence(Buffer.from([4, 9])))] },
    'a value too long': { more: [ext('1.2.3.4', octetString(Buffer.alloc(4096)))] },
  },
  'known-extensions': {
    'critical certificatePolicies': {
      more: [ext(OID.certificatePolicies, encodeCertificatePolicies([{ oid: '1.2.3' }]), true)],
    },
    'an unknown extension': { more: [ext('1.2.3.4', NULL)] },
    'nameConstraints on an end entity': { more: [ext(OID.nameConstraints, sequence(), true)] },
    'keyUsage that is not critical': {
      extensions: { [OID.keyUsage]: ext(OID.keyUsage, encodeKeyUsage(['digitalSignature'])) },
    },
    'a critical authorityKeyIdentifier': {
      extensions: {
        [OID.authorityKeyIdentifier]: ext(
          OID.authorityKeyIdentifier,
          encodeAuthorityKeyIdentifier(plainCa.subjectKeyIdentifier ?? Buffer.alloc(0)),
          true,
        ),
      },
    },
  },
  'basic-constraints': {
    absent: { extensions: { [OID.basicConstraints]: undefined } },
    'a CA': { extensions: { [OID.basicConstraints]: ext(OID.basicConstraints, sequence(boolean(true)), true) } },
    'a path length': { extensions: { [OID.basicConstraints]: ext(OID.basicConstraints, sequence(integer(0)), true) } },
    garbage: { extensions: { [OID.basicConstraints]: ext(OID.basicConstraints, Buffer.from('x'), true) } },
  },
  'key-usage': {
    keyCertSign: { extensions: usage('digitalSignature', 'keyCertSign') },
    cRLSign: { extensions: usage('cRLSign') },
    'keyEncipherment with an EC key': { extensions: usage('keyEncipherment') },
    'keyAgreement with an RSA key': { spki: makeKey('rsa2048').spki, extensions: usage('keyAgreement') },
    'keyAgreement with an Ed25519 key': { spki: makeKey('ed25519').spki, extensions: usage('keyAgreement') },
    'encipherOnly without keyAgreement': { extensions: usage('digitalSignature', 'encipherOnly') },
    'no bit': { extensions: { [OID.keyUsage]: ext(OID.keyUsage, tlv(Tag.BIT_STRING, Buffer.from([7, 0])), true) } },
  },
  'ext-key-usage': {
    'a purpose twice': {
      extensions: { [OID.extKeyUsage]: ext(OID.extKeyUsage, encodeExtKeyUsage([OID.clientAuth, OID.clientAuth])) },
    },
    empty: { extensions: { [OID.extKeyUsage]: ext(OID.extKeyUsage, sequence()) } },
  },
  'subject-key-identifier': {
    absent: { extensions: { [OID.subjectKeyIdentifier]: undefined } },
    'of another key': {
      extensions: { [OID.subjectKeyIdentifier]: ext(OID.subjectKeyIdentifier, octetString(Buffer.alloc(20))) },
    },
  },
  'authority-key-identifier': {
    absent: { extensions: { [OID.authorityKeyIdentifier]: undefined } },
    'without a key identifier': {
      extensions: { [OID.authorityKeyIdentifier]: ext(OID.authorityKeyIdentifier, sequence()) },
    },
    'of another CA': {
      extensions: {
        [OID.authorityKeyIdentifier]: ext(OID.authorityKeyIdentifier, encodeAuthorityKeyIdentifier(Buffer.alloc(20))),
      },
    },
  },
  locations: {
    'no distribution point': {
      more: [ext(OID.cRLDistributionPoints, sequence())],
    },
    'a distribution point that is no URL': {
      more: [ext(OID.cRLDistributionPoints, encodeCrlDistributionPoints(['crl/devices.crl']))],
    },
    'an OCSP responder behind file:': {
      more: [ext(OID.authorityInfoAccess, encodeAuthorityInfoAccess({ ocsp: ['file:/ocsp'], caIssuers: [] }))],
    },
    'an empty authorityInfoAccess': { more: [ext(OID.authorityInfoAccess, sequence())] },
  },
  der: {
    'a field too many': { trailer: NULL },
    'an unknown version': { version: explicit(0, integer(3)) },
    'a serial number that is not minimal': { serial: tlv(Tag.INTEGER, Buffer.alloc(16)) },
    'a thirteenth month': validity(tlv(Tag.UTC_TIME, Buffer.from('301301000000Z')), time(until(90))),
    'an invalid key': { spki: sequence() },
  },
};

const CASES = Object.entries(BROKEN).flatMap(([rule, cases]) =>
  Object.entries(cases).map(([what, parts]) => [rule, what, parts] as const),
);

test('a key that was read before is not taken for another one in the bytes', () => {
  const known = { ...context(plainCa), publicKey: parsePublicKey(makeKey().spki) };
  const rules = (parts: Parts): string[] => lint(tbs(parts, plainCa), known).findings.map(({ rule }) => rule);
  expect(rules({ spki: weakKey.spki, extensions: usage('digitalSignature') })).toContain('public-key');
  expect(rules({ spki: plainCa.spki })).toContain('public-key');
});

describe('RFC 5280: a TBSCertificate that breaks a rule is found by that rule', () => {
  test.each(CASES)('%s: %s', (rule, _, parts) => {
    expect(rulesBroken(parts)).toContain(rule);
  });

  test('a rule finds no fault with a TBSCertificate that keeps all of them', () => {
    expect(rulesBroken({})).toEqual([]);
    expect(
      rulesBroken({ extensions: san(false, dns('*.a.example'), ip(10, 0, 0, 1), email('a.b@c.example')) }),
    ).toEqual([]);
    expect(rulesBroken({ subject: sequence(), extensions: san(true, uri('https://[2001:db8::1]:80/x?y#z')) })).toEqual(
      [],
    );
    expect(rulesBroken(subject(OID.commonName, utf8String('\u{1f600}'.repeat(64))))).toEqual([]);
    expect(
      rulesBroken({ subject: sequence(setOf(attribute(OID.commonName, utf8String('a')), country('DE'))) }),
    ).toEqual([]);
    expect(
      rulesBroken({ spki: makeKey('rsa2048').spki, extensions: usage('digitalSignature', 'keyEncipherment') }),
    ).toEqual([]);
    expect(rulesBroken({ extensions: usage('keyAgreement', 'decipherOnly') })).toEqual([]);
    expect(rulesBroken({ more: [policies({ oid: '1.2.3', cps: 'https://a.example/cps' })] })).toEqual([]);
  });

  test('every rule has a case here', () => {
    const others = ['name-constraints', 'der', 'constraints-of-ca', 'subject-of-ca'];
    expect([...Object.keys(BROKEN), ...others]).toEqual(expect.arrayContaining(LINT_RULES.map((rule) => rule.name)));
  });

  test('every rule has a unique name and a source', () => {
    expect(new Set(LINT_RULES.map((rule) => rule.name)).size).toBe(LINT_RULES.length);
    for (const { source } of LINT_RULES) expect(source).toMatch(/§|^ca\.profile\./);
  });
});

describe("RFC 5280 §4.2.1.10: the CA certificate's nameConstraints", () => {
  const inside = name(
    attribute(OID.organizationName, utf8String('example')),
    attribute(OID.commonName, utf8String('a')),
  );
  const broken = (...names: Buffer[]): string[] =>
    rulesBroken({ subject: inside, extensions: san(false, ...names) }, constrainedCa);

  test.each([
    ['a host of the domain', dns('a.devices.example')],
    ['the domain itself', dns('Devices.Example')],
    ['an address of the block', ip(10, 1, 2, 3)],
    ['a mailbox below the domain', email('a@in.mail.example')],
    ['a URI on a host below the domain', uri('https://a.web.example/x')],
  ])('%s is within them', (_, general) => {
    expect(broken(general)).toEqual([]);
  });

  test.each([
    ['another domain', dns('a.example')],
    ['a name that only ends alike', dns('evildevices.example')],
    ['an excluded domain', dns('x.admin.devices.example')],
    ['another block', ip(11, 0, 0, 1)],
    ['an IPv6 address', ip(...Buffer.alloc(16, 1))],
    ['a mailbox on the domain itself', email('a@mail.example')],
    ['a URI elsewhere', uri('https://web.example/')],
    ['a URI without host', uri('urn:x:y')],
  ])('%s is outside of them', (_, general) => {
    expect(broken(general)).toEqual(['name-constraints']);
  });

  test('a subject outside of the directory is refused, and so is its emailAddress', () => {
    const extensions = san(false, dns('a.devices.example'));
    expect(rulesBroken({ extensions }, constrainedCa)).toEqual(['name-constraints']);
    const mail = sequence(
      setOf(attribute(OID.organizationName, utf8String('Example'))),
      setOf(attribute(OID.emailAddress, tlv(Tag.IA5_STRING, Buffer.from('a@b.example')))),
    );
    expect(rulesBroken({ subject: mail, extensions }, constrainedCa)).toEqual(['name-constraints']);
  });

  test.each<[string, string, boolean]>([
    ['a host of the domain', 'x.devices.example', true],
    ['a host of the domain in full-width letters', 'ｘ.devices.example', true],
    ['another host', 'x.bad.example', false],
    ['a partial wildcard', '*w.devices.example', false],
    ['another host and a space', 'x.bad.example ', false],
    ['another host with ideographic dots', 'x。bad。example', false],
    ['another address and a space', '11.1.2.3 ', false],
    ['a CN that is no host name', 'J. Smith', true],
  ])(
    'a CN counts as the subjectAltName that software reads in it, also with a DNS name in the SAN: %s',
    (_, cn, fits) => {
      const subject = name(
        attribute(OID.organizationName, utf8String('Example')),
        attribute(OID.commonName, utf8String(cn)),
      );
      for (const extensions of [{}, san(false, dns('a.devices.example'))])
        expect(rulesBroken({ subject, extensions }, constrainedCa)).toEqual(fits ? [] : ['name-constraints']);
    },
  );

  test('RFC 5280 §4.2.1.12: a purpose that the CA certificate does not have is refused', () => {
    const serverAuth = { [OID.extKeyUsage]: ext(OID.extKeyUsage, encodeExtKeyUsage([OID.serverAuth])) };
    expect(rulesBroken({ subject: inside, extensions: serverAuth }, constrainedCa)).toEqual(['ext-key-usage']);
  });
});

describe('RFC 5280 §4.2.1.9: the certificate of a device CA', () => {
  const authority = { pathLength: 0, nameConstraints: encodeNameConstraints({ dns: ['edge.example'] }) };
  const constraints = (critical = true, value = authority.nameConstraints): Extensions => ({
    [OID.nameConstraints]: ext(OID.nameConstraints, value, critical),
  });
  const basic = (ca: boolean, pathLength: number | undefined): Extensions => ({
    [OID.basicConstraints]: ext(OID.basicConstraints, encodeBasicConstraints({ ca, pathLength }), true),
  });
  const good = { ...basic(true, 0), ...usage('digitalSignature', 'keyCertSign', 'cRLSign'), ...constraints() };
  const broken = (extensions: Extensions, more: Parts = {}, pathLength?: number): string[] =>
    lint(tbs({ ...more, extensions: { ...good, ...extensions } }), {
      ...context({ ...plainCa, pathLength }),
      authority,
    }).findings.map(({ rule }) => rule);

  test('may be signed by a CA whose path length allows it', () => {
    expect(broken({})).toEqual([]);
    expect(broken({}, {}, 1)).toEqual([]);
    expect(broken({}, {}, 0)).toEqual(['basic-constraints']);
  });

  test.each<[string, string, Extensions]>([
    ['no CA', 'basic-constraints', basic(false, undefined)],
    ['another path length', 'basic-constraints', basic(true, 1)],
    ['any path length', 'basic-constraints', basic(true, undefined)],
    ['no keyCertSign', 'key-usage', usage('digitalSignature')],
    ['no keyUsage', 'key-usage', { [OID.keyUsage]: undefined }],
    ['no constraints', 'constraints-of-ca', { [OID.nameConstraints]: undefined }],
    ['constraints that may be ignored', 'constraints-of-ca', constraints(false)],
    ['other constraints', 'constraints-of-ca', constraints(true, encodeNameConstraints({ dns: ['example'] }))],
  ])('%s is refused', (_, rule, extensions) => {
    expect(broken(extensions)).toEqual([rule]);
  });

  test('an empty subject is refused', () => {
    expect(broken(san(true, dns('a.example')), { subject: sequence() })).toEqual(['subject-of-ca']);
  });
});
