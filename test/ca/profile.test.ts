import { describe, expect, test } from 'vitest';

import {
  allowedByPlaceholder,
  checkPolicy,
  copiedExtensions,
  type PolicyProfile,
  type RequestedContent,
} from '../../src/ca/profile.ts';
import { EstuaryError } from '../../src/errors.ts';
import { NULL, bitString, octetString, sequence } from '../../src/pki/der/der.ts';
import {
  encodeBasicConstraints,
  encodeExtKeyUsage,
  encodeKeyUsage,
  MAX_EXTENSION_LENGTH,
  type Extension,
} from '../../src/pki/x509/extensions.ts';
import { ipAddress, type GeneralName, parseGeneralNameText } from '../../src/pki/x509/general-name.ts';
import { EMPTY_NAME, parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parsePublicKey } from '../../src/pki/x509/public-key.ts';
import { keyPair, spkiDer, type KeyKind } from '../support/keys.ts';

type Overrides = Partial<Omit<PolicyProfile, 'subject' | 'san'>> & {
  subject?: Partial<PolicyProfile['subject']>;
  san?: Partial<PolicyProfile['san']>;
};

const profile = ({ subject, san, ...rest }: Overrides = {}): PolicyProfile => ({
  key_types: ['ec:P-256', 'rsa:2048', 'ed25519'],
  key_usage: ['digitalSignature', 'keyEncipherment'],
  extended_key_usage: ['clientAuth', '1.2.3.4'],
  subject: { required: [], patterns: {}, ...subject },
  san: { allowed: ['dns', 'ip', 'email', 'uri'], required: [], wildcards: false, max: 4, ...san },
  ...rest,
});

const key = (kind: KeyKind) => parsePublicKey(spkiDer(keyPair(kind)));
/** The point of order 1, with which anyone can sign. */
const smallOrder = () =>
  parsePublicKey(Buffer.concat([key('ed25519').spki.subarray(0, -32), Buffer.of(1), Buffer.alloc(31)]));
const dns = (value: string): GeneralName => ({ kind: 'dns', value });
const other = (text: string): GeneralName => parseGeneralNameText(text);
const requested = (overrides: Partial<RequestedContent> = {}): RequestedContent => ({
  subject: parseDistinguishedName('CN=dev-1,O=Example'),
  subjectAltNames: [],
  publicKey: key('ec:P-256'),
  extensions: [],
  ...overrides,
});
const extension = (oid: string, value: Buffer, critical = false): Extension => ({ oid, critical, value });

const subject = (text: string): Partial<RequestedContent> => ({ subject: parseDistinguishedName(text) });
const names = (...subjectAltNames: GeneralName[]): Partial<RequestedContent> => ({ subjectAltNames });
const asks = (...extensions: Extension[]): Partial<RequestedContent> => ({ extensions });
const keyUsage = (...usages: Parameters<typeof encodeKeyUsage>[0]) =>
  asks(extension(OID.keyUsage, encodeKeyUsage(usages), true));
const purposes = (...oids: string[]) => asks(extension(OID.extKeyUsage, encodeExtKeyUsage(oids)));

const FOR_CAS: Overrides = {
  certificate_authority: {
    path_length: 0,
    permitted_dns: [],
    permitted_email: [],
    permitted_ip: [],
    permitted_uri: [],
  },
};
const caConstraints = extension(OID.basicConstraints, encodeBasicConstraints({ ca: true, pathLength: 0 }), true);

describe('the profile allows', () => {
  test.each<[string, Overrides, Partial<RequestedContent>]>([
    ['a plain request', {}, {}],
    ['a key type of the list', {}, { publicKey: key('ed25519') }],
    [
      'SANs of every kind',
      {},
      names(dns('a.b'), ipAddress('::1'), { kind: 'email', value: 'a@b.c' }, { kind: 'uri', value: 'a:b' }),
    ],
    ['no subject, but a SAN', {}, { subject: EMPTY_NAME, ...names(dns('a.example')) }],
    ['the required attributes', { subject: { required: ['O', 'commonName'] } }, {}],
    ['the allowed attributes', { subject: { allowed: ['CN', '2.5.4.10'] } }, {}],
    ['a value that matches', { subject: { patterns: { CN: 'dev-[0-9]+' } } }, {}],
    ['a DNS name that matches in lower case', { san: { dns: ['[a-z]+\\.example'] } }, names(dns('HOST.example'))],
    [
      'an address of the block',
      { san: { ip: ['10.0.0.0/8', '2001:db8::/32'] } },
      names(ipAddress('10.9.8.7'), ipAddress('2001:db8:1::1')),
    ],
    [
      'an IPv4-mapped IPv6 address of an IPv6 block',
      { san: { ip: ['::ffff:10.0.0.0/104'] } },
      names(ipAddress('::ffff:10.1.2.3')),
    ],
    [
      'every address of a family',
      { san: { ip: ['0.0.0.0/0', '::/0'] } },
      names(ipAddress('255.0.0.1'), ipAddress('ff::')),
    ],
    ['the one address of a block', { san: { ip: ['10.0.0.1/32'] } }, names(ipAddress('10.0.0.1'))],
    ['a wildcard where wildcards are on', { san: { wildcards: true } }, names(dns('*.a.example'))],
    ['an asterisk outside of DNS names', {}, names({ kind: 'uri', value: 'urn:*' })],
    [
      'a name in the subject that the profile has added as a subjectAltName',
      { san: { allowed: [] } },
      { ...subject('CN=a.example'), ...names(dns('a.example')), added: [dns('a.example')] },
    ],
    [
      'what a pattern with a placeholder allowed before the request was queued',
      { subject: { patterns: { CN: '{id}' } }, san: { dns: ['{id}\\.example'] } },
      { ...names(dns('a.example')), values: undefined },
    ],
    ['a user principal name that matches', { san: { allowed: ['upn'], upn: ['[a-z]+@a'] } }, names(other('upn:x@a'))],
    [
      'names of the other kinds, and values in either case of their hex',
      {
        san: {
          allowed: ['hardware_module', 'permanent_identifier', 'srv', 'registered_id', 'other:1.2.3'],
          ...{ hardware_module: ['1.2:00AB'], permanent_identifier: ['1.2:A'], srv: ['_e.A.example'] },
          ...{ registered_id: ['1.2.3'], other: ['1.2.3:0C0161'] },
          max: 5,
        },
      },
      names(
        ...['hardware_module:1.2:00ab', 'permanent_identifier:1.2:A', 'srv:_e.a.Example', 'registered_id:1.2.3'].map(
          other,
        ),
        other('other:1.2.3:0c0161'),
      ),
    ],
    [
      'a value with a placeholder',
      { san: { allowed: ['permanent_identifier'], permanent_identifier: ['1.2:{id}'] } },
      { ...names(other('permanent_identifier:1.2:a.b')), values: () => ['a.b'] },
    ],
    [
      'an underscore where dns_underscore is on',
      { san: { dns_underscore: true, allowed: ['dns'] } },
      names(dns('_est.a.example')),
    ],
    ['an underscore in a CN', {}, subject('CN=a_b.example')],
    ['the required kinds', { san: { required: ['dns'] } }, names(dns('a.example'), ipAddress('10.0.0.1'))],
    ['a key usage of the profile', {}, keyUsage('keyEncipherment')],
    ['purposes of the profile', {}, purposes(OID.clientAuth, '1.2.3.4')],
    ['every usage of an end entity where the profile names none', { key_usage: [] }, keyUsage('dataEncipherment')],
    ['every purpose where the profile names none', { extended_key_usage: [] }, purposes(OID.codeSigning)],
    [
      'basicConstraints that say no CA',
      {},
      asks(extension(OID.basicConstraints, encodeBasicConstraints({ ca: false, pathLength: undefined }), true)),
    ],
    ['a CA certificate where it issues them, with any purpose', FOR_CAS, asks(caConstraints)],
    ['the key usages of a CA there', FOR_CAS, keyUsage('keyCertSign', 'cRLSign')],
    ['every purpose there', FOR_CAS, purposes(OID.codeSigning)],
    ['critical name constraints there', FOR_CAS, asks(extension(OID.nameConstraints, sequence(), true))],
    ['an unknown extension that is not critical, and leaves it out', {}, asks(extension('1.2.3', NULL))],
    [
      'a subjectKeyIdentifier, and computes its own',
      {},
      asks(extension(OID.subjectKeyIdentifier, octetString(Buffer.alloc(4)))),
    ],
  ])('%s', (_, overrides, content) => {
    expect(() => checkPolicy(profile(overrides), requested(content))).not.toThrow();
  });
});

describe('the profile refuses with 400', () => {
  test.each<[string, string, Overrides, Partial<RequestedContent>]>([
    ['another key type', 'KEY_TYPE_NOT_ALLOWED', {}, { publicKey: key('ec:P-384') }],
    ['another RSA size', 'KEY_TYPE_NOT_ALLOWED', {}, { publicKey: key('rsa:3072') }],
    ['an unusable key of an allowed type', 'KEY_TYPE_NOT_ALLOWED', {}, { publicKey: smallOrder() }],
    ['neither subject nor SAN', 'SUBJECT_MISSING', {}, { subject: EMPTY_NAME }],
    ['a missing attribute', 'SUBJECT_NOT_ALLOWED', { subject: { required: ['OU'] } }, {}],
    ['an attribute outside of the list', 'SUBJECT_NOT_ALLOWED', { subject: { allowed: ['CN'] } }, {}],
    ['a value that does not match', 'SUBJECT_NOT_ALLOWED', { subject: { patterns: { CN: 'dev' } } }, {}],
    [
      'one of two values that does not match',
      'SUBJECT_NOT_ALLOWED',
      { subject: { patterns: { CN: 'a' } } },
      subject('CN=a,CN=b'),
    ],
    [
      'a value whose match is partial',
      'SUBJECT_NOT_ALLOWED',
      { subject: { patterns: { CN: 'dev|x' } } },
      subject('CN=dev-1'),
    ],
    [
      'a kind of SAN outside of the list',
      'SAN_NOT_ALLOWED',
      { san: { allowed: ['dns'] } },
      names(ipAddress('10.0.0.1')),
    ],
    ['every SAN where none is allowed', 'SAN_NOT_ALLOWED', { san: { allowed: [] } }, names(dns('a.example'))],
    ['a kind of SAN that is not offered', 'SAN_NOT_ALLOWED', {}, names({ kind: 'other', tag: 0xa4, der: NULL })],
    ['a kind that is off by default', 'SAN_NOT_ALLOWED', {}, names(other('upn:a@b'))],
    [
      'an otherName of another OID',
      'SAN_NOT_ALLOWED',
      { san: { allowed: ['other:1.2.3'] } },
      names(other('other:1.2.4:0500')),
    ],
    [
      'a user principal name that does not match',
      'SAN_NOT_ALLOWED',
      { san: { allowed: ['upn'], upn: ['[a-z]+@a'] } },
      names(other('upn:x@b')),
    ],
    [
      'a literal value that differs where a regular expression would match',
      'SAN_NOT_ALLOWED',
      { san: { allowed: ['permanent_identifier'], permanent_identifier: ['1.2:a.b'] } },
      names(other('permanent_identifier:1.2:axb')),
    ],
    [
      'the value of another requester',
      'SAN_NOT_ALLOWED',
      { san: { allowed: ['permanent_identifier'], permanent_identifier: ['1.2:{id}'] } },
      { ...names(other('permanent_identifier:1.2:axb')), values: () => ['a.b'] },
    ],
    ['a missing otherName', 'SAN_MISSING', { san: { allowed: ['other:1.2'], required: ['other:1.2'] } }, {}],
    ['an underscore in a DNS name', 'SAN_NOT_ALLOWED', {}, names(dns('a_b.example'))],
    [
      'an underscore in a DNS name that the profile itself adds',
      'SAN_NOT_ALLOWED',
      {},
      { ...names(dns('a_b.example')), added: [dns('a_b.example')] },
    ],
    ['too many SANs', 'SAN_NOT_ALLOWED', {}, names(...['a', 'b', 'c', 'd', 'e'].map(dns))],
    ['a missing kind of SAN', 'SAN_MISSING', { san: { required: ['dns', 'ip'] } }, names(dns('a.example'))],
    ['a DNS name that does not match', 'SAN_NOT_ALLOWED', { san: { dns: ['a\\.example'] } }, names(dns('aa.example'))],
    [
      'an email that does not match',
      'SAN_NOT_ALLOWED',
      { san: { email: ['.*@a'] } },
      names({ kind: 'email', value: 'x@b' }),
    ],
    [
      'an email that matches in lower case only',
      'SAN_NOT_ALLOWED',
      { san: { email: ['[a-z]+@a'] } },
      names({ kind: 'email', value: 'X@a' }),
    ],
    [
      'a name in the subject that the profile has not added',
      'SAN_NOT_ALLOWED',
      { san: { allowed: [] } },
      { ...subject('CN=b.example'), ...names(dns('a.example')), added: [dns('a.example')] },
    ],
    [
      'a value that does not match a pattern with a placeholder',
      'SUBJECT_NOT_ALLOWED',
      { subject: { patterns: { CN: '{id}' } } },
      { values: () => ['dev-2'] },
    ],
    [
      'for a queued request, a value that does not match a pattern without a placeholder',
      'SUBJECT_NOT_ALLOWED',
      { subject: { patterns: { CN: 'dev-2' } } },
      { values: undefined },
    ],
    [
      'a URI that does not match',
      'SAN_NOT_ALLOWED',
      { san: { uri: ['urn:.*'] } },
      names({ kind: 'uri', value: 'http://a/' }),
    ],
    [
      'an address outside of the blocks',
      'SAN_NOT_ALLOWED',
      { san: { ip: ['10.0.0.0/8'] } },
      names(ipAddress('11.0.0.1')),
    ],
    [
      'an IPv6 address with IPv4 blocks',
      'SAN_NOT_ALLOWED',
      { san: { ip: ['10.0.0.0/8'] } },
      names(ipAddress('2001:db8::1')),
    ],
    [
      'the IPv4-mapped IPv6 address of an IPv4 block',
      'SAN_NOT_ALLOWED',
      { san: { ip: ['10.0.0.0/8'] } },
      names(ipAddress('::ffff:10.0.0.1')),
    ],
    [
      'an IPv4 address of an IPv4-mapped IPv6 block',
      'SAN_NOT_ALLOWED',
      { san: { ip: ['::ffff:10.0.0.0/104'] } },
      names(ipAddress('10.0.0.1')),
    ],
    [
      'an IPv4 address where all IPv6 addresses are allowed',
      'SAN_NOT_ALLOWED',
      { san: { ip: ['::/0'] } },
      names(ipAddress('10.0.0.1')),
    ],
    [
      'an IPv6 address where all IPv4 addresses are allowed',
      'SAN_NOT_ALLOWED',
      { san: { ip: ['0.0.0.0/0'] } },
      names(ipAddress('::1')),
    ],
    [
      'an address one bit outside of a block',
      'SAN_NOT_ALLOWED',
      { san: { ip: ['10.0.0.0/9'] } },
      names(ipAddress('10.128.0.0')),
    ],
    ['a wildcard', 'SAN_NOT_ALLOWED', {}, names(dns('*.a.example'))],
    ['a key usage beyond the profile', 'KEY_USAGE_NOT_ALLOWED', {}, keyUsage('digitalSignature', 'nonRepudiation')],
    ['keyCertSign', 'KEY_USAGE_NOT_ALLOWED', { key_usage: [] }, keyUsage('keyCertSign')],
    ['cRLSign', 'KEY_USAGE_NOT_ALLOWED', {}, keyUsage('cRLSign')],
    ['a purpose beyond the profile', 'EXTENDED_KEY_USAGE_NOT_ALLOWED', {}, purposes(OID.clientAuth, OID.codeSigning)],
    ['anyExtendedKeyUsage', 'EXTENDED_KEY_USAGE_NOT_ALLOWED', {}, purposes(OID.anyExtendedKeyUsage)],
    [
      'a CA certificate',
      'CA_NOT_ALLOWED',
      {},
      asks(extension(OID.basicConstraints, encodeBasicConstraints({ ca: true, pathLength: 0 }))),
    ],
    ['cRLSign where the profile names no usage', 'KEY_USAGE_NOT_ALLOWED', { key_usage: [] }, keyUsage('cRLSign')],
    ['a CA key usage beyond those of CAs', 'KEY_USAGE_NOT_ALLOWED', FOR_CAS, keyUsage('keyEncipherment')],
    [
      'a critical extension other than name constraints from a device CA',
      'EXTENSION_NOT_ALLOWED',
      FOR_CAS,
      asks(extension('1.2.3', NULL, true)),
    ],
    ['an unknown critical extension', 'EXTENSION_NOT_ALLOWED', {}, asks(extension('1.2.3', NULL, true))],
    ['critical name constraints', 'EXTENSION_NOT_ALLOWED', {}, asks(extension(OID.nameConstraints, sequence(), true))],
    ['a broken keyUsage', 'EXTENSION_MALFORMED', {}, asks(extension(OID.keyUsage, NULL))],
    ['a keyUsage of no bits', 'EXTENSION_MALFORMED', {}, asks(extension(OID.keyUsage, bitString(Buffer.from([0]))))],
    ['an empty extKeyUsage', 'EXTENSION_MALFORMED', {}, asks(extension(OID.extKeyUsage, sequence()))],
    ['broken basicConstraints', 'EXTENSION_MALFORMED', {}, asks(extension(OID.basicConstraints, Buffer.alloc(1)))],
  ])('%s', (_, code, overrides, content) => {
    const check = () => checkPolicy(profile(overrides), requested(content));
    expect(check).toThrow(EstuaryError);
    expect(check).toThrow(expect.objectContaining({ status: 400, code }));
  });

  test("the answer names what is refused, with the client's text quoted and cut short", () => {
    const check = (length: number) => () =>
      checkPolicy(profile({ subject: { patterns: { CN: 'dev' } } }), requested(subject(`CN=${'x'.repeat(length)}`)));
    expect(check(80)).toThrow(`The subject has a CN that is not allowed: "${'x'.repeat(80)}".`);
    expect(check(81)).toThrow(`The subject has a CN that is not allowed: "${'x'.repeat(80)}…".`);
    expect(() => checkPolicy(profile(), requested(purposes(OID.cmcRA)))).toThrow(/extended key usage cmcRA/);
    expect(() => checkPolicy(profile(), requested({ publicKey: key('ec:P-521') }))).toThrow(
      'The public key is ec:P-521; ec:P-256, rsa:2048, ed25519 allowed.',
    );
  });
});

test('only a pattern with a placeholder allows a name to a requester that is bound to another one', () => {
  const bound = profile({
    subject: { patterns: { CN: '{id}-x', O: '.*' } },
    san: { dns: ['{id}\\.example', '[a-z]+\\.test'], email: ['.*'] },
  });
  const allowed = (asked: Parameters<typeof allowedByPlaceholder>[1]): boolean =>
    allowedByPlaceholder(bound, asked, () => ['dev-1']);
  const attributes = (text: string): boolean[] =>
    parseDistinguishedName(text)
      .rdns.flat()
      .map((attribute) => allowed({ attribute }));
  expect(attributes('CN=dev-1-x')).toEqual([true]);
  for (const text of ['CN=dev-2-x', 'O=Example', 'OU=Example']) expect(attributes(text), text).toEqual([false]);
  expect(allowed({ name: dns('DEV-1.example') })).toBe(true);
  const others: GeneralName[] = [
    dns('dev-2.example'),
    dns('a.test'),
    { kind: 'email', value: 'a@b' },
    ipAddress('::1'),
  ];
  for (const name of [...others, { kind: 'uri', value: 'a:b' } as const]) expect(allowed({ name })).toBe(false);
});

test('a copied extension has at most 4,096 octets', () => {
  const copying = profile({ extensions: [{ oid: '1.2.3', critical: false, from: 'csr' }] });
  const check = (length: number) => () =>
    checkPolicy(copying, requested(asks(extension('1.2.3', octetString(Buffer.alloc(length - 4))))));
  expect(check(MAX_EXTENSION_LENGTH)).not.toThrow();
  expect(check(MAX_EXTENSION_LENGTH + 1)).toThrow(expect.objectContaining({ code: 'EXTENSION_NOT_ALLOWED' }));
});

test('only extensions that the profile takes from the request come into the certificate as they are', () => {
  const from = { critical: false, from: 'csr' as const };
  const taken = extension('1.2.3.4.5', NULL);
  const all = [extension(OID.keyUsage, encodeKeyUsage(['digitalSignature'])), taken, extension('1.2.3.4.6', NULL)];
  expect(copiedExtensions(profile({ extensions: [{ oid: '1.2.3.4.5', ...from }] }), all)).toEqual([taken]);
  expect(copiedExtensions(profile(), all)).toEqual([]);
  const fixed = { oid: '1.2.3.4.5', critical: false, value: '0500' };
  expect(copiedExtensions(profile({ extensions: [fixed] }), all)).toEqual([]);
});
