import { describe, expect, test } from 'vitest';
import { isSlotId, keyId, parsePkcs11Uri } from '../../src/pki/pkcs11-uri.ts';

describe('a pkcs11: URI (RFC 7512)', () => {
  test.each([
    ['pkcs11:', {}],
    ['PKCS11:token=est;object=issuing;type=private', { token: 'est', object: 'issuing' }],
    ['pkcs11:token=My%20token%3b;id=%01%ff', { token: 'My token;', id: '01ff' }],
    ['pkcs11:id=ab%01', { id: '616201' }],
    ['pkcs11:serial=0a=b;model=m;manufacturer=a%2Fb', { serial: '0a=b', model: 'm', manufacturer: 'a/b' }],
    ['pkcs11:slot-id=2305843009213693953;', { 'slot-id': '2305843009213693953' }],
    [
      'pkcs11:object=k?module-path=/usr/lib/x.so&pin-source=file:/etc/pin',
      { object: 'k', 'module-path': '/usr/lib/x.so', 'pin-source': '/etc/pin' },
    ],
    ['pkcs11:object=k?pin-source=hsm.pin', { object: 'k', 'pin-source': 'hsm.pin' }],
    ['pkcs11:object=k?pin-source=file:///etc/my%20pin', { object: 'k', 'pin-source': '/etc/my pin' }],
    ['pkcs11:token=%C3%A9', { token: 'é' }],
    // As p11tool writes a token without them (*pk11-pchar).
    ['pkcs11:model=;serial=', { model: '', serial: '' }],
  ])('%s', (uri, parts) => {
    expect(parsePkcs11Uri(uri)).toEqual(parts);
  });

  test.each([
    ['https://example.com', 'does not begin with pkcs11:'],
    ['pkcs11:object=k?pin-value=1234', 'contains pin-value: a secret must not be in the configuration file'],
    ['pkcs11:pin-value=1234', 'contains pin-value: a secret must not be in the configuration file'],
    ['pkcs11:library-version=3', 'has the attribute "library-version", which is not supported'],
    ['pkcs11:slot-description=x', 'has the attribute "slot-description", which is not supported'],
    ['pkcs11:x-vendor=1', 'has the attribute "x-vendor", which is not supported'],
    ['pkcs11:object=k?module-name=x', 'has the attribute "module-name", which is not supported'],
    ['pkcs11:module-path=/x.so', 'has the attribute "module-path", which is not supported'],
    ['pkcs11:token=a;token=b', 'has the attribute token twice'],
    ['pkcs11:token', 'has the attribute token without a value'],
    ['pkcs11:type=public', 'has an invalid value of type'],
    ['pkcs11:slot-id=x', 'has an invalid value of slot-id'],
    ['pkcs11:token=%e9', 'has an invalid value of token'],
    ['pkcs11:token=%4', 'has an invalid value of token'],
    ['pkcs11:id=', 'has an invalid value of id'],
    ['pkcs11:type=', 'has an invalid value of type'],
    ['pkcs11:?module-path=', 'has an invalid value of module-path'],
    ['pkcs11:?pin-source=', 'has an invalid value of pin-source'],
    ['pkcs11:object=k?pin-source=|program', 'has an invalid value of pin-source'],
    ['pkcs11:object=k?pin-source=file://elsewhere/pin', 'has an invalid value of pin-source'],
  ])('%s is refused: it %s', (uri, problem) => {
    expect(parsePkcs11Uri(uri)).toBe(problem);
  });
});

test.each([
  ['01fF', '01ff'],
  ['0x01FF', '01ff'],
  ['%01%fF', '01ff'],
  ['01:ff', '01ff'],
  ['0', undefined],
  ['0x', undefined],
  ['01:f', undefined],
  ['01%ff', undefined],
  ['xyz', undefined],
])('the CKA_ID %s is %s', (text, hex) => {
  expect(keyId(text)).toBe(hex);
});

test('a slot ID has at most 64 bits', () => {
  expect(['0', '18446744073709551615', '0xffffffffffffffff', '0X1'].every(isSlotId)).toBe(true);
  expect(['', '-1', '1.0', '18446744073709551616', '0x10000000000000000', 'x'].some(isSlotId)).toBe(false);
});
