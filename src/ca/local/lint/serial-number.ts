import type { LintRule } from './rule.ts';

export const serialNumber: LintRule = {
  name: 'serial-number',
  source: 'RFC 5280 §4.1.2.2',
  blames: 'ca',
  check: ({ tbs: { serialOctets } }) => {
    if (serialOctets.readUInt8(0) >= 0x80 || serialOctets.every((octet) => octet === 0))
      return 'the serial number must be positive';
    if (serialOctets.length > 20) return 'the serial number must not be longer than 20 octets';
    return serialOctets.length < 8 ? 'the serial number must have 64 bits or more' : undefined;
  },
};
