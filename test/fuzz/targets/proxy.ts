/** The PROXY protocol's header: read piece by piece it is what it is as a whole. */
import { LONGEST_PROXY_HEADER, readProxyHeader } from '../../../src/http/proxy-protocol.ts';
import type { Target } from '../target.ts';

function read(input: Buffer): void {
  const whole = readProxyHeader(input);
  if (whole.kind === 'incomplete' && input.length >= LONGEST_PROXY_HEADER)
    throw new Error('waits for more than a header has');
  if (whole.kind !== 'header') return;
  if (whole.length > input.length) throw new Error('a header longer than what came');
  for (let length = 0; length < whole.length; length++)
    if (readProxyHeader(input.subarray(0, length)).kind === 'header') throw new Error('a header within a header');
}

const V2 = '0d0a0d0a000d0a515549540a';

const seeds = (): Promise<Buffer[]> =>
  Promise.resolve([
    Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n'),
    Buffer.from('PROXY TCP6 2001:db8::1 ::1 1 65535\r\n'),
    Buffer.from('PROXY UNKNOWN\r\n'),
    Buffer.from(`${V2}2111000cc0000201c0000202dc0401bb`, 'hex'),
    Buffer.from(`${V2}21210024${'20010db8000000000000000000000001'.repeat(2)}dc0401bb`, 'hex'),
    Buffer.from(`${V2}20000000`, 'hex'),
  ]);

export const target: Target = {
  grammar: 'text',
  maxLength: 4096,
  words: ['PROXY ', 'TCP4 ', 'TCP6 ', 'UNKNOWN', '\r\n', '::ffff:', '65536'],
  seeds,
  read,
  isRefusal: () => false,
};
