import * as x509 from '@peculiar/x509';
import { describe, expect, test } from 'vitest';

import {
  DerError,
  Tag,
  integer,
  octetString,
  oid,
  sequence,
  setOf,
  tlv,
  utf8String,
  NULL,
} from '../../../src/pki/der/der.ts';
import {
  EMPTY_NAME,
  attributeValues,
  buildName,
  escapeAttributeValue,
  formatName,
  namesEqual,
  parseDistinguishedName,
  parseName,
  type AttributeInput,
  type Name,
  comparableName,
  foldedName,
  issuedName,
  withoutEmpty,
  namesMatch,
} from '../../../src/pki/x509/name.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { attribute, name, makeKey, buildCsr } from '../../support/csr.ts';
import { opensslText } from '../../support/openssl.ts';
import { InputError } from '../../../src/pki/input-error.ts';

const key = makeKey();

/** What openssl makes of a Name, in its RFC 2253 form. */
function opensslName(der: Buffer): string {
  const csr = buildCsr(key, { subject: der });
  return opensslText(['req', '-inform', 'DER', '-noout', '-subject', '-nameopt', 'RFC2253,-esc_msb,utf8'], csr)
    .replace(/^subject=/, '')
    .replace(/\n$/, '');
}

const rdn = (...attributes: AttributeInput[]): AttributeInput[] => attributes;
const cn = (text: string, tag?: number): AttributeInput => ({ type: OID.commonName, text, ...(tag && { tag }) });

describe('RFC 4514 §4: the examples', () => {
  const dcs = [rdn({ type: OID.domainComponent, text: 'net' }), rdn({ type: OID.domainComponent, text: 'example' })];
  test.each<[string, Name]>([
    ['UID=jsmith,DC=example,DC=net', buildName([...dcs, rdn({ type: OID.userId, text: 'jsmith' })])],
    [
      'OU=Sales+CN=J.  Smith,DC=example,DC=net',
      buildName([...dcs, rdn({ type: OID.organizationalUnitName, text: 'Sales' }, cn('J.  Smith'))]),
    ],
    ['CN=James \\"Jim\\" Smith\\, III,DC=example,DC=net', buildName([...dcs, rdn(cn('James "Jim" Smith, III'))])],
    ['CN=Before\\0dAfter,DC=example,DC=net', buildName([...dcs, rdn(cn('Before\rAfter'))])],
    ['1.3.6.1.4.1.1466.0=#04024869', parseName(name(attribute('1.3.6.1.4.1.1466.0', octetString(Buffer.from('Hi')))))],
  ])('%s', (text, expected) => {
    expect(namesEqual(parseDistinguishedName(text), expected)).toBe(true);
    expect(formatName(expected)).toBe(text);
    expect(parseDistinguishedName(text).der).toEqual(expected.der);
  });

  test('CN=Lu\\C4\\8Di\\C4\\87 is read; its letters are written as they are', () => {
    const parsed = parseDistinguishedName('CN=Lu\\C4\\8Di\\C4\\87');
    expect(attributeValues(parsed, OID.commonName)).toEqual(['Lučić']);
    expect(formatName(parsed)).toBe('CN=Lučić');
  });
});

describe('RFC 4514: every name written is read again, and OpenSSL and @peculiar/x509 agree', () => {
  test.each<[string, AttributeInput[][]]>([
    ['one attribute', [rdn(cn('a'))]],
    [
      'the usual ones',
      [rdn({ type: OID.countryName, text: 'DE' }), rdn({ type: OID.organizationName, text: 'Ä & Ö' }), rdn(cn('x'))],
    ],
    [
      'a multi-valued RDN',
      [rdn(cn('a'), { type: OID.serialNumber, text: '12' }), rdn({ type: OID.userId, text: 'u' })],
    ],
    ['specials', [rdn(cn('a,b+c"d\\e<f>g;h=i#j'))]],
    ['a leading hash', [rdn(cn('#abc'))]],
    ['a leading and a trailing space', [rdn(cn(' a '))]],
    ['one space', [rdn(cn(' '))]],
    ['a trailing backslash', [rdn(cn('a\\'))]],
    ['a backslash and a trailing space', [rdn(cn('a\\ '))]],
    ['an emoji', [rdn(cn('\u{1f600}'))]],
    ['hex-like text behind a backslash', [rdn(cn('\\0d'))]],
  ])('%s', (_, rdns) => {
    const built = buildName(rdns);
    const text = formatName(built);
    expect(parseDistinguishedName(text).der).toEqual(built.der);
    expect(
      parseName(built.der)
        .rdns.flat()
        .map(({ text: value }) => value),
    ).toEqual(
      parseDistinguishedName(text)
        .rdns.flat()
        .map(({ text: value }) => value),
    );
    expect(namesEqual(parseName(built.der), built)).toBe(true);
    const openssl = opensslName(built.der);
    expect(parseDistinguishedName(openssl).der).toEqual(built.der);
    expect(Buffer.from(new x509.Name(built.der).toArrayBuffer())).toEqual(built.der);
  });

  test.each([
    ['UTF8String', Tag.UTF8_STRING, 'Grün'],
    ['PrintableString', Tag.PRINTABLE_STRING, 'plain'],
    ['NumericString', Tag.NUMERIC_STRING, '12 34'],
    ['IA5String', Tag.IA5_STRING, 'a@b'],
    ['BMPString', Tag.BMP_STRING, 'Grün €'],
  ])('a %s is decoded as OpenSSL decodes it', (_, tag, text) => {
    const built = buildName([rdn({ type: OID.description, text, tag })]);
    expect(parseName(built.der).rdns[0]?.[0]).toMatchObject({ tag, text });
    expect(opensslName(built.der)).toBe(`description=${text}`);
  });

  test('TeletexString (as Latin-1), UniversalString and VisibleString are decoded', () => {
    const visible = name(attribute(OID.commonName, tlv(Tag.VISIBLE_STRING, Buffer.from('vis'))));
    expect(attributeValues(parseName(visible), OID.commonName)).toEqual(['vis']);
    const teletex = name(attribute(OID.commonName, tlv(Tag.TELETEX_STRING, Buffer.from('Gr\xfcn', 'latin1'))));
    const universal = name(attribute(OID.commonName, tlv(Tag.UNIVERSAL_STRING, Buffer.from('0001f600', 'hex'))));
    expect(attributeValues(parseName(teletex), OID.commonName)).toEqual(['Grün']);
    expect(attributeValues(parseName(universal), OID.commonName)).toEqual(['\u{1f600}']);
    expect(opensslName(teletex)).toBe('CN=Grün');
    expect(opensslName(universal)).toBe('CN=\u{1f600}');
  });

  test('control characters never reach a log line', () => {
    expect(escapeAttributeValue('a\nb\u0085\u2028\x7f')).toBe('a\\0ab\\c2\\85\\e2\\80\\a8\\7f');
    expect(attributeValues(parseDistinguishedName('CN=a\\0ab'), OID.commonName)).toEqual(['a\nb']);
  });
});

describe('as people write it', () => {
  test.each([
    ['cn=a, o=b', 'CN=a,O=b'],
    [' CN = a , O = b ', 'CN=a,O=b'],
    ['CN=a\\ , O=b', 'CN=a\\ ,O=b'],
    ['commonName=a,2.5.4.10=b', 'CN=a,O=b'],
    ['email=a@b.example', 'emailAddress=a@b.example'],
    ['CN=a + serialNumber=1', 'CN=a+serialNumber=1'],
    ['CN=a\\2cb', 'CN=a\\,b'],
    ['CN=#0c0161', 'CN=a'],
    ['', ''],
    ['  ', ''],
  ])('%j', (written, canonical) => {
    expect(formatName(parseDistinguishedName(written))).toBe(canonical);
  });

  test.each([
    ['no value', 'CN'],
    ['an empty value', 'CN='],
    ['an unknown type', 'foo=bar'],
    ['no type', '=a'],
    ['an unescaped quote', 'CN="a"'],
    ['an unescaped semicolon', 'CN=a;O=b'],
    ['a dangling separator', 'CN=a,'],
    ['a leading separator', ',CN=a'],
    ['a dangling plus', 'CN=a+'],
    ['half a hex pair', 'CN=a\\0'],
    ['a backslash at the end', 'CN=a\\'],
    ['a backslash before a letter', 'CN=a\\z'],
    ['bytes that are no UTF-8', 'CN=\\ff'],
    ['odd hex', 'CN=#0c016'],
    ['hex that is no DER', 'CN=#ffff'],
    ['a raw NUL', 'CN=a\0b'],
    ['a country that is not printable', 'C=ü'],
    ['a lone surrogate', 'CN=\ud800'],
    ['an invalid OID', '3.1=a'],
  ])('%s is refused with a reason', (_, text) => {
    expect(() => parseDistinguishedName(text)).toThrow(InputError);
  });
});

describe('names are equal by decoded value, in order, whatever the string type', () => {
  const a = buildName([rdn({ type: OID.organizationName, text: 'O' }), rdn(cn('a'))]);
  test.each<[string, boolean, Name]>([
    ['the same', true, parseName(a.der)],
    [
      'other string types',
      true,
      buildName([
        rdn({ type: OID.organizationName, text: 'O', tag: Tag.PRINTABLE_STRING }),
        rdn(cn('a', Tag.BMP_STRING)),
      ]),
    ],
    ['another order', false, buildName([rdn(cn('a')), rdn({ type: OID.organizationName, text: 'O' })])],
    ['another case', false, buildName([rdn({ type: OID.organizationName, text: 'O' }), rdn(cn('A'))])],
    ['one RDN more', false, buildName([rdn({ type: OID.organizationName, text: 'O' }), rdn(cn('a')), rdn(cn('b'))])],
    ['one RDN less', false, buildName([rdn({ type: OID.organizationName, text: 'O' })])],
    ['both in one RDN', false, buildName([rdn({ type: OID.organizationName, text: 'O' }, cn('a'))])],
    ['nothing', false, EMPTY_NAME],
    [
      'another type of the same value',
      false,
      buildName([rdn({ type: OID.organizationName, text: 'O' }), rdn({ type: OID.userId, text: 'a' })]),
    ],
  ])('%s: %s', (_, equal, b) => {
    expect(namesEqual(a, b)).toBe(equal);
    expect(namesEqual(b, a)).toBe(equal);
  });

  test('the attributes of one RDN are a set', () => {
    const one = buildName([rdn(cn('a'), { type: OID.userId, text: 'u' })]);
    const other = buildName([rdn({ type: OID.userId, text: 'u', tag: Tag.PRINTABLE_STRING }, cn('a', Tag.BMP_STRING))]);
    expect(namesEqual(one, other)).toBe(true);
  });

  test('a value that is no string equals only itself, not the text that looks like it', () => {
    const octets = parseName(name(attribute(OID.commonName, integer(5))));
    expect(namesEqual(octets, parseName(name(attribute(OID.commonName, utf8String('#020105')))))).toBe(false);
  });
});

describe('X.690: what is no Name is refused', () => {
  const valid = attribute(OID.commonName, utf8String('a'));
  test.each([
    ['a SET', setOf(setOf(valid))],
    ['an RDN that is a SEQUENCE', sequence(sequence(valid))],
    ['an empty RDN', sequence(setOf())],
    ['an attribute without value', sequence(setOf(sequence(oid(OID.commonName))))],
    ['an attribute with two values', sequence(setOf(sequence(oid(OID.commonName), utf8String('a'), utf8String('b'))))],
    ['trailing octets', Buffer.concat([sequence(setOf(valid)), Buffer.alloc(1)])],
    ['nothing', Buffer.alloc(0)],
  ])('%s', (_, der) => {
    expect(() => parseName(der)).toThrow(DerError);
  });
});

describe('strings of other software', () => {
  const ofTag = (tag: number, octets: string) =>
    parseName(name(attribute(OID.commonName, tlv(tag, Buffer.from(octets, 'latin1')))));

  test.each([Tag.PRINTABLE_STRING, Tag.IA5_STRING, Tag.TELETEX_STRING, Tag.VISIBLE_STRING, Tag.NUMERIC_STRING])(
    'characters outside of the alphabet of string type %d are read, octets above 0x7F as Latin-1',
    (tag) => {
      expect(namesEqual(ofTag(tag, 'a_&@*\xe9'), ofTag(Tag.UTF8_STRING, 'a_&@*\xc3\xa9'))).toBe(true);
      expect(namesMatch(ofTag(tag, 'A_&@*\xe9'), ofTag(Tag.UTF8_STRING, 'a_&@*\xc3\xa9'))).toBe(true);
      expect(issuedName(ofTag(tag, 'a_&')).der).toEqual(ofTag(Tag.UTF8_STRING, 'a_&').der);
    },
  );

  test('a VisibleString, which OpenSSL cannot read in a name, is issued as UTF8String, also of an unknown type', () => {
    const ofUnknown = (tag: number) => parseName(name(attribute('1.2.3.4', tlv(tag, Buffer.from('a')))));
    expect(issuedName(ofUnknown(Tag.VISIBLE_STRING)).der).toEqual(ofUnknown(Tag.UTF8_STRING).der);
    expect(issuedName(ofUnknown(Tag.IA5_STRING)).der).toEqual(ofUnknown(Tag.IA5_STRING).der);
  });

  test.each([
    ['broken UTF-8', Tag.UTF8_STRING, '\xc0\xaf'],
    ['an odd BMPString', Tag.BMP_STRING, 'a'],
    ['a UniversalString beyond Unicode', Tag.UNIVERSAL_STRING, '\x7f\0\0\0'],
  ])('%s equals only itself', (_, tag, octets) => {
    const one = ofTag(tag, octets);
    const hex = one.rdns[0]?.[0]?.text ?? '';
    expect(namesEqual(one, ofTag(tag, octets))).toBe(true);
    expect(namesEqual(one, ofTag(Tag.UTF8_STRING, hex))).toBe(false);
    expect(namesMatch(one, ofTag(Tag.UTF8_STRING, hex))).toBe(false);
    expect(formatName(one)).toBe(`CN=${hex}`);
  });

  test('an empty value does not count in a comparison', () => {
    const cn = attribute(OID.commonName, utf8String('a'));
    const o = attribute(OID.organizationName, utf8String(''));
    for (const other of [name(o, cn), name(cn, o), sequence(setOf(cn, o))]) {
      expect(namesEqual(parseName(other), parseName(name(cn)))).toBe(true);
      expect(comparableName(parseName(other))).toBe(comparableName(parseName(name(cn))));
      expect(withoutEmpty(parseName(other)).der).toEqual(name(cn));
    }
  });
});

const cnDer = (text: string): Buffer => attribute(OID.commonName, utf8String(text));

describe('RFC 5280 §7.1: names as path validation compares them', () => {
  test.each([
    ['CN=Root', 'CN=rOOT', true],
    ['CN=a  b', 'CN=A b', true],
    ['CN=\\ a\\ ', 'CN=A', true],
    ['CN=a+O=b', 'O=B+CN=A', true],
    ['CN=a,O=b', 'O=b,CN=a', false],
    ['CN=ab', 'CN=a b', false],
  ])('%s, %s: %s', (a, b, same) => {
    expect(namesMatch(parseDistinguishedName(a), parseDistinguishedName(b))).toBe(same);
  });

  test('a value that holds what stands between values, or hex, is no other name', () => {
    const one = parseName(sequence(setOf(cnDer('a\u00012.5.4.3=b'))));
    const two = parseName(sequence(setOf(cnDer('a'), cnDer('b'))));
    expect(foldedName(one)).not.toBe(foldedName(two));
    const three = parseName(sequence(setOf(cnDer('a\u00022.5.4.3=b'))));
    const four = parseName(sequence(setOf(cnDer('a')), setOf(cnDer('b'))));
    expect(foldedName(three)).not.toBe(foldedName(four));
    const text = parseName(sequence(setOf(cnDer('#0500'))));
    const value = parseName(sequence(setOf(attribute(OID.commonName, NULL))));
    expect(foldedName(text)).not.toBe(foldedName(value));
  });
});

const SPACES = [
  ' ',
  '\t',
  '\n',
  '\v',
  '\f',
  '\r',
  '\u0085',
  '\u00a0',
  '\u1680',
  '\u2003',
  '\u2028',
  '\u202f',
  '\u3000',
  '\ufeff',
];

describe('a formatted name is read as the same name, whatever space it has', () => {
  test.each(SPACES.map((space) => [space.codePointAt(0)?.toString(16), space]))('U+%s', (_, space) => {
    for (const text of [
      `${space}a`,
      `a${space}`,
      `a${space}b`,
      space,
      `${space}${space}a${space}${space}`,
      `a\\${space}`,
    ]) {
      const name = parseName(sequence(setOf(cnDer(text))));
      expect(namesEqual(parseDistinguishedName(formatName(name)), name), JSON.stringify(formatName(name))).toBe(true);
    }
  });
});

test('a name keeps its octets when the message that it was read from changes', () => {
  const message = Buffer.from(sequence(setOf(cnDer('kept octets'))));
  const { der } = parseName(message);
  message.fill(0);
  expect(formatName(parseName(der))).toBe('CN=kept octets');
});

test('a name of any length is read', () => {
  const text = 'a'.repeat(600);
  const der = sequence(setOf(cnDer(text)));
  expect(formatName(parseName(der))).toBe(`CN=${text}`);
  expect(parseName(der).der).toEqual(der);
});
