/** HAProxy's "The PROXY protocol" §2: valid and invalid headers. */
import { describe, expect, test } from 'vitest';
import { LONGEST_PROXY_HEADER, readProxyHeader } from '../../src/http/proxy-protocol.ts';

const V2 = '0d0a0d0a000d0a515549540a';
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const line = (text: string): Buffer => Buffer.from(text, 'latin1');
const V6 = '20010db8000000000000000000000001';

const HEADERS: readonly [what: string, header: Buffer, address: string | undefined][] = [
  ['v1 TCP4', line('PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n'), '192.0.2.1'],
  ['v1 TCP6', line('PROXY TCP6 2001:DB8::1 ::1 1 65535\r\n'), '2001:db8::1'],
  ['v1 UNKNOWN', line('PROXY UNKNOWN\r\n'), undefined],
  ['v1 UNKNOWN with more', line('PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n'), undefined],
  ['v2 TCP4', hex(`${V2} 21 11 000c c0000201 c0000202 dc04 01bb`), '192.0.2.1'],
  ['v2 TCP4 with TLVs', hex(`${V2} 21 11 0011 c0000201 c0000202 dc04 01bb 0400020000`), '192.0.2.1'],
  ['v2 TCP6', hex(`${V2} 21 21 0024 ${V6} ${V6} dc04 01bb`), '2001:db8::1'],
  ['v2 LOCAL', hex(`${V2} 20 00 0000`), undefined],
  ['v2 LOCAL with addresses', hex(`${V2} 20 11 000c c0000201 c0000202 dc04 01bb`), undefined],
  ['v2 PROXY, unspecified', hex(`${V2} 21 00 0000`), undefined],
];

describe('a PROXY header', () => {
  test.each(HEADERS)(
    '%s: its address and its length, whatever follows, and nothing before it is whole',
    (_, header, address) => {
      const expected = { kind: 'header', length: header.length, address };
      expect(readProxyHeader(header)).toEqual(expected);
      expect(readProxyHeader(Buffer.concat([header, hex('160301')]))).toEqual(expected);
      for (let length = 0; length < header.length; length++)
        expect(readProxyHeader(header.subarray(0, length))).toEqual({ kind: 'incomplete' });
    },
  );

  test.each<[what: string, bytes: Buffer]>([
    ['a ClientHello', hex('16030101f4010001f00303')],
    ['HTTP', line('GET / HTTP/1.1\r\n')],
    ['other case', line('proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n')],
    ['v1, another protocol', line('PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n')],
    ['v1, no protocol', line('PROXY \r\n')],
    ['v1, an IPv6 address as TCP4', line('PROXY TCP4 ::1 ::1 1 2\r\n')],
    ['v1, an IPv4 address as TCP6', line('PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n')],
    ['v1, a zone', line('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n')],
    ['v1, leading zeros', line('PROXY TCP4 192.000.2.1 192.0.2.2 1 2\r\n')],
    ['v1, a name', line('PROXY TCP4 localhost 192.0.2.2 1 2\r\n')],
    ['v1, no destination', line('PROXY TCP4 192.0.2.1\r\n')],
    ['v1, one port', line('PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n')],
    ['v1, a port too large', line('PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n')],
    ['v1, a port with zeros', line('PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n')],
    ['v1, more fields', line('PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n')],
    ['v1, two spaces', line('PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n')],
    ['unbounded v1', line(`PROXY TCP4 ${'1'.repeat(200)}`)],
    ['v1, an end too late', line(`PROXY UNKNOWN ${'1'.repeat(100)}\r\n`)],
    ['v2, version 1', hex(`${V2} 11 11 000c c0000201 c0000202 dc04 01bb`)],
    ['v2, command 2', hex(`${V2} 22 11 000c c0000201 c0000202 dc04 01bb`)],
    ['v2, UDP', hex(`${V2} 21 12 000c c0000201 c0000202 dc04 01bb`)],
    ['v2, a UNIX socket', hex(`${V2} 21 31 00d8 ${'00'.repeat(216)}`)],
    ['v2, addresses cut off', hex(`${V2} 21 11 0004 c0000201`)],
    ['v2, IPv6 in the length of IPv4', hex(`${V2} 21 21 000c c0000201 c0000202 dc04 01bb`)],
    ['v2, too long', hex(`${V2} 21 11 ffff`)],
  ])('is not: %s', (_, bytes) => {
    expect(readProxyHeader(bytes)).toMatchObject({ kind: 'invalid' });
  });

  test('is never waited for beyond its longest', () => {
    const longest = hex(`${V2} 21 11 0800 ${'00'.repeat(2048)}`);
    expect(longest).toHaveLength(LONGEST_PROXY_HEADER);
    expect(readProxyHeader(longest)).toMatchObject({ kind: 'header', length: LONGEST_PROXY_HEADER });
  });
});
