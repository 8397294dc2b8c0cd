/** Lockout keys of addresses: an IPv4 address, or the /64 of an IPv6 address. */
import { expect, test } from 'vitest';
import { lockoutAddress } from '../../src/auth/identity.ts';

test.each([
  ['an IPv4 address', '192.0.2.1', '192.0.2.1'],
  ['an IPv4-mapped address', '::ffff:192.0.2.1', '192.0.2.1'],
  ['an IPv4-mapped address in groups', '::ffff:c000:201', '192.0.2.1'],
  ['an IPv6 address', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['another address of that /64', '2001:db8:1:2:ffff::1', '2001:db8:1:2::/64'],
  ['a link-local address with its zone', 'fe80::1%eth0', 'fe80::/64'],
  ['ffff in the sixth group, after groups that are not zero', '2001:db8:1:2:0:ffff:c000:201', '2001:db8:1:2::/64'],
  ['only zeros before a sixth group that is not ffff', '::fffe:c000:201', '::/64'],
  ['text that is no address', 'unix', 'unix'],
  ['nothing', '', ''],
])('%s', (_, address, expected) => {
  expect(lockoutAddress(address)).toBe(expected);
});
