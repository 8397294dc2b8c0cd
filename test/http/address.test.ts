/** IPv4 clients are written as IPv4, whatever the socket or a proxy calls them (RFC 4291 §2.5.5.2). */
import { describe, expect, test } from 'vitest';
import { lockoutAddress } from '../../src/auth/identity.ts';
import { networkAddress } from '../../src/http/address.ts';

describe('the address of a client', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['::ffff:0:1.2.3.4', '::ffff:0:1.2.3.4'],
    ['fe80::ffff:1%eth0', 'fe80::ffff:1%eth0'],
    ['::1', '::1'],
  ])('%s is %s', (address, expected) => {
    expect(networkAddress(address)).toBe(expected);
    if (expected.includes('.') && !expected.includes(':')) expect(lockoutAddress(address)).toBe(expected);
  });

  test('of a connection that is gone is unknown', () => expect(networkAddress(undefined)).toBe('unknown'));
});
