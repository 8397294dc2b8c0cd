/** RFC 5929 §3 and RFC 9266: both ends of a TLS connection have the same binding. */
import { expect, test } from 'vitest';
import { channelBinding } from '../../src/pki/channel-binding.ts';

test.each([
  ['TLSv1.3', false, 'EXPORTER-Channel-Binding'],
  ['TLSv1.3', true, 'EXPORTER-Channel-Binding'],
  ['TLSv1.2', false, "the client's Finished"],
  ['TLSv1.2', true, "the server's Finished"],
])('RFC 5929 §3 and RFC 9266: the binding of %s, resumed: %s, is %s', (protocol, isResumed, expected) => {
  const ends = [
    ['server', 'client'],
    ['client', 'server'],
  ] as const;
  for (const [own, peer] of ends) {
    const socket = {
      getProtocol: () => protocol,
      isSessionReused: () => isResumed,
      exportKeyingMaterial: (_length: number, label: string) => Buffer.from(label),
      getFinished: () => Buffer.from(`the ${own}'s Finished`),
      getPeerFinished: () => Buffer.from(`the ${peer}'s Finished`),
    };
    expect(channelBinding(socket, own)?.toString(), own).toBe(expected);
  }
});
