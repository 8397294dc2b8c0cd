/** Network addresses as failures are counted on them. */
import { isIPv4, isIPv6 } from 'node:net';

import { ipAddress } from '../pki/x509/general-name.ts';

/**
 * What stands for a client's address in a lockout: an IPv4 address itself, also where it comes IPv4-mapped; of an IPv6
 * address the /64, because whoever has one address has all of that prefix. Anything else stays as it is.
 */
export function lockoutAddress(address: string): string {
  const bare = address.replace(/%.*$/, '');
  if (isIPv4(bare) || !isIPv6(bare)) return bare;
  const { bytes } = ipAddress(bare);
  const mapped = bytes.subarray(0, 10).every((octet) => octet === 0) && bytes.readUInt16BE(10) === 0xffff;
  if (mapped) return [...bytes.subarray(12)].join('.');
  const groups = [0, 2, 4, 6].map((offset) => bytes.readUInt16BE(offset).toString(16));
  return `${ipAddress(`${groups.join(':')}::`).value}/64`;
}
