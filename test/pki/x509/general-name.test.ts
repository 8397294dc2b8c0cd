import { describe, expect, test } from 'vitest';

import {
  DerError,
  Tag,
  explicit,
  integer,
  octetString,
  oid,
  sequence,
  tlv,
  utf8String,
} from '../../../src/pki/der/der.ts';
import {
  encodeGeneralNames,
  formatGeneralName,
  generalNameProblem,
  ipAddress,
  parseGeneralNameText,
  parseGeneralNames,
  sameGeneralNames,
  type GeneralName,
} from '../../../src/pki/x509/general-name.ts';
import { buildCsr, commonName, dns, email, extension, extensionRequest, makeKey, uri } from '../../support/csr.ts';
import { opensslText } from '../../support/openssl.ts';
import { InputError } from '../../../src/pki/input-error.ts';

const key = makeKey();
const dnsName = (value: string): GeneralName => ({ kind: 'dns', value });

describe('RFC 5280 §4.2.1.6: what is encoded is read again, and OpenSSL reads the same', () => {
  const names: readonly GeneralName[] = [
    dnsName('a.example'),
    { kind: 'email', value: 'a@b.example' },
    { kind: 'uri', value: 'https://a.example/x?y#z' },
    ipAddress('192.0.2.255'),
    ipAddress('2001:db8::1'),
  ];

  test('all kinds', () => {
    const der = encodeGeneralNames(names);
    expect(parseGeneralNames(der)).toEqual(names);
    const csr = buildCsr(key, { attributes: [extensionRequest(extension('2.5.29.17', der))] });
    expect(opensslText(['req', '-inform', 'DER', '-noout', '-text'], csr)).toContain(
      'DNS:a.example, email:a@b.example, URI:https://a.example/x?y#z, IP Address:192.0.2.255, IP Address:2001:DB8:0:0:0:0:0:1',
    );
  });

  test('other kinds are kept as they are', () => {
    const directory = explicit(4, commonName('x'));
    const [parsed] = parseGeneralNames(sequence(directory));
    expect(parsed).toEqual({ kind: 'other', tag: 0xa4, der: directory });
    expect(encodeGeneralNames(parsed === undefined ? [] : [parsed])).toEqual(sequence(directory));
  });

  test('text for people', () => {
    expect(names.map(formatGeneralName)).toEqual([
      'DNS:a.example',
      'email:a@b.example',
      'URI:https://a.example/x?y#z',
      'IP:192.0.2.255',
      'IP:2001:db8::1',
    ]);
  });
});

describe('RFC 5952: the canonical text of an address', () => {
  test.each([
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['0:0:1:0:0:0:0:0', '0:0:1::'],
    ['10:0:0:10:0:0:0:10', '10:0:0:10::10'],
    ['100:0:0:20:0:0:30:0', '100::20:0:0:30:0'],
    ['::ffff:192.0.2.1', '::ffff:c000:201'],
    ['fe80::1:2.3.4.5', 'fe80::1:203:405'],
    ['255.255.255.255', '255.255.255.255'],
  ])('%s → %s', (text, canonical) => {
    const address = ipAddress(text);
    expect(formatGeneralName(address)).toBe(`IP:${canonical}`);
    expect(parseGeneralNames(encodeGeneralNames([address]))).toEqual([address]);
    expect(ipAddress(canonical)).toEqual(address);
  });

  test.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '01.2.3.4',
    ':::',
    '1::2::3',
    'fe80::1%eth0',
    'a.example',
    '1:2:3:4:5:6:7',
  ])('%j is invalid', (text) => {
    expect(() => ipAddress(text)).toThrow(InputError);
  });
});

describe('SANs are equal as sets, DNS names without case', () => {
  const a = [dnsName('A.example'), ipAddress('10.0.0.1')];
  test.each<[string, boolean, readonly GeneralName[]]>([
    ['another order and case', true, [ipAddress('10.0.0.1'), dnsName('a.EXAMPLE')]],
    ['a repetition', true, [...a, dnsName('a.example')]],
    ['one more', false, [...a, dnsName('b.example')]],
    ['one less', false, [dnsName('a.example')]],
    ['none', false, []],
    ['the same text of another kind', false, [{ kind: 'uri', value: 'A.example' }, ipAddress('10.0.0.1')]],
  ])('%s: %s', (_, same, b) => {
    expect(sameGeneralNames(a, b)).toBe(same);
    expect(sameGeneralNames(b, a)).toBe(same);
  });

  test("RFC 5321 §2.4: a mailbox's domain is compared without case, its local part with", () => {
    const mail = (value: string): GeneralName[] => [{ kind: 'email', value }];
    expect(sameGeneralNames(mail('a@B.example'), mail('a@b.example'))).toBe(true);
    expect(sameGeneralNames(mail('A@b.example'), mail('a@b.example'))).toBe(false);
  });

  test.each([
    [true, 'https://host.example:8443/A?b', 'HTTPS://Host.Example:8443/A?b'],
    [true, 'urn:uuid:a', 'URN:uuid:a'],
    [false, 'https://host.example/A', 'https://host.example/a'],
    [false, 'https://A@host.example', 'https://a@host.example'],
    [false, 'urn:uuid:a', 'urn:uuid:A'],
  ])('RFC 5280 §7.4: the scheme and the host of a URI are compared without case: %s, %s and %s', (same, one, other) => {
    const [a, b] = [one, other].map((value): GeneralName[] => [{ kind: 'uri', value }]);
    expect(sameGeneralNames(a ?? [], b ?? [])).toBe(same);
  });
});

describe('the form of a name', () => {
  const value = (kind: 'dns' | 'email' | 'uri') => (text: string) => generalNameProblem({ kind, value: text });

  test.each([
    'a',
    'a.example',
    'A-1.Example',
    '1.example',
    '*.a.example',
    `${'a'.repeat(63)}.example`,
    'xn--bcher-kva.example',
  ])('DNS %j is well-formed', (text) => {
    expect(value('dns')(text)).toBeUndefined();
  });
  test.each([
    '',
    '.',
    'a.',
    '.a',
    'a..b',
    '-a',
    'a-',
    'a b',
    '*',
    '*.a',
    'a.*.b',
    '*a.b.c',
    'a/b',
    `${'a'.repeat(64)}.b`,
    'ä.example',
    'a\0',
  ])('DNS %j is not', (text) => {
    expect(value('dns')(text)).toBeTypeOf('string');
  });

  test.each(['a@b', 'a.b+c@d.example', "o'neil@b.example"])('email %j is well-formed', (text) => {
    expect(value('email')(text)).toBeUndefined();
  });
  test.each([
    '',
    'a',
    '@',
    'a@',
    '@b',
    'a@b@c',
    'a..b@c',
    '.a@b',
    'a b@c',
    'a@b_c',
    'a@*.b.c',
    '"a"@b',
    `${'a'.repeat(65)}@b`,
  ])('email %j is not', (text) => {
    expect(value('email')(text)).toBeTypeOf('string');
  });

  test.each([
    'http://a.example',
    'https://u@a.example:443/p?q#f',
    'urn:x:y',
    'http://[::1]/',
    'http://10.0.0.1/%20',
    'mailto:a@b',
  ])('URI %j is well-formed', (text) => {
    expect(value('uri')(text)).toBeUndefined();
  });
  test.each([
    '',
    'a',
    '/a',
    '//a/b',
    'http:',
    'http://',
    'http:///x',
    '1a:b',
    'a b:c',
    'http://a/ b',
    'http://a/%zz',
    'http://a b/',
    'x:\0',
    'http://a/<b>',
  ])('URI %j is not', (text) => {
    expect(value('uri')(text)).toBeTypeOf('string');
  });
});

describe('kinds of otherName', () => {
  const otherName = (type: string, value: Buffer): Buffer => tlv(0xa0, oid(type), tlv(0xa0, value));
  const one = (der: Buffer): GeneralName => parseGeneralNames(sequence(der))[0] as GeneralName;
  const UPN = '1.3.6.1.4.1.311.20.2.3';

  test.each([
    ['upn:é@a.example', otherName(UPN, utf8String('é@a.example'))],
    [
      'hardware_module:1.3.6.1.4.1.9:00ab',
      otherName('1.3.6.1.5.5.7.8.4', sequence(oid('1.3.6.1.4.1.9'), octetString(Buffer.from('00ab', 'hex')))),
    ],
    ['permanent_identifier:1.3.6:a:b', otherName('1.3.6.1.5.5.7.8.3', sequence(utf8String('a:b'), oid('1.3.6')))],
    ['permanent_identifier::x', otherName('1.3.6.1.5.5.7.8.3', sequence(utf8String('x')))],
    ['permanent_identifier:1.3.6:', otherName('1.3.6.1.5.5.7.8.3', sequence(oid('1.3.6')))],
    ['srv:_est.a.example', otherName('1.3.6.1.5.5.7.8.7', tlv(Tag.IA5_STRING, Buffer.from('_est.a.example')))],
    ['registered_id:1.3.6.1', tlv(0x88, oid('1.3.6.1').subarray(2))],
    ['other:1.2.3:0500', otherName('1.2.3', Buffer.from([5, 0]))],
  ])('%s is read, written and parsed from its text', (text, der) => {
    const name = one(der);
    expect(formatGeneralName(name)).toBe(text);
    expect(generalNameProblem(name)).toBeUndefined();
    expect(encodeGeneralNames([name])).toEqual(sequence(der));
    expect(parseGeneralNameText(text)).toEqual(name);
  });

  test.each([Tag.IA5_STRING, Tag.PRINTABLE_STRING])(
    'a user principal name of string type %d becomes a UTF8String',
    (tag) => {
      const name = one(otherName(UPN, tlv(tag, Buffer.from('a@b'))));
      expect(encodeGeneralNames([name])).toEqual(sequence(otherName(UPN, utf8String('a@b'))));
    },
  );

  test.each([
    ['a UPN that is an INTEGER', otherName(UPN, integer(1)), 'is not a valid upn: its value has another type'],
    [
      'a UPN that is a BMPString',
      otherName(UPN, tlv(Tag.BMP_STRING, Buffer.from([0, 97]))),
      'is not a valid upn: its value has another type',
    ],
    ['an empty UPN', otherName(UPN, utf8String('')), 'is empty'],
    [
      'a UPN with a line feed',
      otherName(UPN, utf8String('a\n@b')),
      'contains U+000A at position 2, which is a control or invisible character',
    ],
    [
      'a SRVName without a service',
      otherName('1.3.6.1.5.5.7.8.7', tlv(Tag.IA5_STRING, Buffer.from('a.example'))),
      'is not a service and a host, such as _est.example.com',
    ],
    [
      'a hardwareModuleName that is text',
      otherName('1.3.6.1.5.5.7.8.4', utf8String('a')),
      'is not a valid hardware_module: its value has another type',
    ],
    [
      'a permanentIdentifier with a field too many',
      otherName('1.3.6.1.5.5.7.8.3', sequence(oid('1.2'), integer(1))),
      'is not a valid permanent_identifier: its value has another type',
    ],
    [
      'an unknown one that is no DER',
      otherName('1.2.3', Buffer.from([0x30, 2, 5, 9])),
      'is invalid: the value: truncated value',
    ],
  ])('%s is read, and rejected', (_, der, problem) => {
    expect(generalNameProblem(one(der))).toBe(problem);
  });

  test('what cannot be read is kept, and never issued', () => {
    for (const der of [tlv(0xa0, Buffer.alloc(0)), tlv(0x88, Buffer.from([0x80])), tlv(0xa4, sequence())])
      expect(one(der)).toMatchObject({ kind: 'other', der });
  });
});

describe('X.690: what is no GeneralNames is refused', () => {
  test.each([
    ['an empty list', sequence()],
    ['a universal tag', sequence(utf8String('a'))],
    ['an unknown context tag', sequence(tlv(0x8f, Buffer.from('a')))],
    ['an INTEGER', integer(1)],
    ['a SET', tlv(Tag.SET, dns('a'), email('a@b'), uri('a:b'))],
  ])('%s', (_, der) => {
    expect(() => parseGeneralNames(der)).toThrow(DerError);
  });

  test('text outside of ASCII is never encoded', () => {
    expect(() => encodeGeneralNames([dnsName('ä.example')])).toThrow(InputError);
  });
});
