import { describe, expect, test } from 'vitest';
import { NULL, printableString, sequence, setOf, Tag, tlv, utf8String } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { formatGeneralName } from '../../../src/pki/x509/general-name.ts';
import { parseDistinguishedName, parseName, type Name } from '../../../src/pki/x509/name.ts';
import { altNamesInSubject, looksLike } from '../../../src/pki/x509/subject-names.ts';
import { attribute, commonName, name } from '../../support/csr.ts';

const read = (cn: string): string[] => altNamesInSubject(parseName(commonName(cn))).map(formatGeneralName);

describe('a CN that is read as a subjectAltName', () => {
  test.each<[string, string, string]>([
    ['a host name', 'www.bad.example', 'DNS:www.bad.example'],
    ['a wildcard', '*.bad.example', 'DNS:*.bad.example'],
    ['a partial wildcard', '*w.bad.example', 'DNS:*w.bad.example'],
    ['a wildcard inside of a label', 'w*w.bad.example', 'DNS:w*w.bad.example'],
    ['a wildcard in another label', 'www.*.example', 'DNS:www.*.example'],
    ['a wildcard without a dot', 'ba*', 'DNS:ba*'],
    ['a lone asterisk', '*', 'DNS:*'],
    ['outer white space', ' www.bad.example\u00a0\u3000', 'DNS:www.bad.example'],
    ['a leading dot', '.www.bad.example', 'DNS:www.bad.example'],
    ['trailing dots', 'www.bad.example..', 'DNS:www.bad.example'],
    ['a trailing dot after a space', 'www.bad.example .', 'DNS:www.bad.example'],
    ['a full-width dot', 'www\uff0ebad\uff0eexample', 'DNS:www.bad.example'],
    ['a half-width ideographic dot', 'www\uff61bad\uff61example', 'DNS:www.bad.example'],
    ['an ideographic dot', 'www\u3002bad\u3002example', 'DNS:www.bad.example'],
    ['a one-dot leader', 'www\u2024bad.example', 'DNS:www.bad.example'],
    ['an Arabic full stop', 'www\u06d4bad\u06d4example', 'DNS:www.bad.example'],
    ['full-width letters', 'ｗｗｗ.bad.example', 'DNS:www.bad.example'],
    ['a full-width asterisk', '\uff0aw.bad.example', 'DNS:*w.bad.example'],
    ['NFD', 'mu\u0308nchen.example', 'DNS:münchen.example'],
    ['marks that do not compose', 'q\u0308.example', 'DNS:q\u0308.example'],
    ['a script with vowel signs', 'हिन्दी.example', 'DNS:हिन्दी.example'],
    ['underscores', '_a.bad_b.example', 'DNS:_a.bad_b.example'],
    ['one label and a dot', 'admin.', 'DNS:admin'],
    ['an IPv4 address', '10.0.0.1', 'IP:10.0.0.1'],
    ['an IPv4 address and a space', '10.0.0.1 ', 'IP:10.0.0.1'],
    ['an IPv4 address and a dot', '10.0.0.1.', 'IP:10.0.0.1'],
    ['an IPv4 address of full-width characters', '１０．０．０．１', 'IP:10.0.0.1'],
    ['an IPv6 address', '2001:DB8::1', 'IP:2001:db8::1'],
    ['an IPv6 address and spaces', ' 2001:db8::1 ', 'IP:2001:db8::1'],
    ['an IPv6 address with a zone', 'fe80::1%eth0', 'IP:fe80::1'],
    ['an IPv4-mapped IPv6 address', '::ffff:10.0.0.1', 'IP:::ffff:a00:1'],
  ])('%s: %j', (_, cn, expected) => {
    expect(read(cn)).toEqual([expected]);
  });

  test.each([
    ...['J. Smith', 'alice@EXAMPLE.COM', 'device-1', 'localhost', 'host/a.example.com', 'John Q. Public'],
    ...['https://a.example', 'a.example b.example', 'Paral·lel', 'ジョン・スミス', '#1', '(c) Example Inc.'],
  ])('another CN is not: %s', (cn) => {
    expect(read(cn)).toEqual([]);
  });

  test('nor is any other attribute, but for an emailAddress', () => {
    expect(altNamesInSubject(parseDistinguishedName('UID=a.example,O=b.example,DC=example,OU=10.0.0.1'))).toEqual([]);
    const subject = parseDistinguishedName('emailAddress=a@b.example,CN=a.example,CN=b.example');
    expect(altNamesInSubject(subject).map(formatGeneralName)).toEqual([
      'DNS:b.example',
      'DNS:a.example',
      'email:a@b.example',
    ]);
  });
});

describe('subjects that look the same', () => {
  const ca = parseDistinguishedName('CN=Estuary Issuing CA,O=Example');
  const of = (cn: Buffer, organization = utf8String('Example')): Name =>
    parseName(name(attribute(OID.organizationName, organization), attribute(OID.commonName, cn)));

  test.each<[string, Buffer]>([
    ['the same', utf8String('Estuary Issuing CA')],
    ['of another string type', printableString('Estuary Issuing CA')],
    ['a BMPString', tlv(Tag.BMP_STRING, Buffer.from('Estuary Issuing CA', 'utf16le').swap16())],
    ['in another case', utf8String('ESTUARY issuing ca')],
    ['with more white space', utf8String(' Estuary\u00a0 Issuing  CA ')],
    ['of full-width letters', utf8String('Ｅstuary Issuing ＣＡ')],
  ])('%s', (_, cn) => {
    expect(looksLike(of(cn), ca)).toBe(true);
  });

  test('in NFD', () => {
    expect(looksLike(of(utf8String('u\u0308')), of(utf8String('ü')))).toBe(true);
  });

  test('the attributes of one RDN are a set', () => {
    const [cn, o] = [attribute(OID.commonName, utf8String('A')), attribute(OID.organizationName, utf8String('B'))];
    expect(looksLike(parseName(sequence(setOf(cn, o))), parseDistinguishedName('O=b+CN=a'))).toBe(true);
  });

  test.each([
    ['another CN', parseDistinguishedName('CN=Estuary Issuing CA 2,O=Example')],
    ['an attribute less', parseDistinguishedName('CN=Estuary Issuing CA')],
    ['an attribute more', parseDistinguishedName('CN=Estuary Issuing CA,OU=x,O=Example')],
    ['the attributes in another order', parseDistinguishedName('O=Example,CN=Estuary Issuing CA')],
    ['the attributes in one RDN', parseDistinguishedName('CN=Estuary Issuing CA+O=Example')],
    ['another attribute type', parseDistinguishedName('OU=Estuary Issuing CA,O=Example')],
    ['words without their space', of(utf8String('EstuaryIssuing CA'))],
    ['a value that is not text', of(NULL)],
  ])('%s does not', (_, subject) => {
    expect(looksLike(subject, ca)).toBe(false);
  });

  test('a text that shows the hex of another value does not', () => {
    expect(looksLike(of(NULL), of(utf8String('#0500')))).toBe(false);
  });
});
