import { describe, expect, test } from 'vitest';
import { encodeCsrAttrs, keyTypeAttribute, parseCsrAttrs } from '../../../src/pki/pkcs10/csrattrs.ts';
import { DerError, oid, sequence, setOf, utf8String } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';

const MAC_ADDRESS = '1.3.6.1.1.1.1.22';

describe('RFC 8951 §4: the example, byte for byte', () => {
  const EXAMPLE = 'MEEGCSqGSIb3DQEJBzASBgcqhkjOPQIBMQcGBSuBBAAiMBYGCSqGSIb3DQEJDjEJBgcrBgEBAQEWBggqhkjOPQQDAw==';
  const items = [
    { oid: OID.challengePassword },
    keyTypeAttribute('ec:P-384'),
    { oid: OID.extensionRequest, values: [oid(MAC_ADDRESS)] },
    { oid: OID.ecdsaWithSHA384 },
  ];

  test('is what we encode', () => {
    expect(encodeCsrAttrs(items).toString('base64')).toBe(EXAMPLE);
  });

  test('is what we read', () => {
    expect(parseCsrAttrs(Buffer.from(EXAMPLE, 'base64'))).toEqual(items);
  });
});

test.each([
  ['ec:P-256', '301506072a8648ce3d0201310a06082a8648ce3d030107'],
  ['rsa:4096', '301106092a864886f70d010101310402021000'],
  ['ed25519', '300706032b65703100'],
])('RFC 9908 §3.2: the attribute that asks for %s', (keyType, hex) => {
  expect(
    encodeCsrAttrs([keyTypeAttribute(keyType)])
      .subarray(2)
      .toString('hex'),
  ).toBe(hex);
});

test.each([
  ['a string in the list', sequence(utf8String('x'))],
  ['an attribute without values', sequence(sequence(oid(MAC_ADDRESS)))],
  ['an attribute with a field too many', sequence(sequence(oid(MAC_ADDRESS), setOf(), setOf()))],
  ['no SEQUENCE at all', oid(MAC_ADDRESS)],
])('%s is refused', (_, der) => {
  expect(() => parseCsrAttrs(der)).toThrow(DerError);
});
