import type { Duplex } from 'node:stream';

/** An IPv4 address in its own form also on a dual-stack socket. */
export function networkAddress(address: string | undefined): string {
  if (address === undefined) return 'unknown';
  return /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(address)?.[1] ?? address;
}

/** The client's network address at the other end of a connection, also of one that is gone. */
export function clientAddress(socket: Duplex): string {
  // A destroyed TLSSocket has forgotten its peer; the TCP socket below it remembers, since its address was asked for.
  return networkAddress(remoteAddressOf(socket) ?? remoteAddressOf(Reflect.get(socket, '_parent')));
}

function remoteAddressOf(socket: unknown): string | undefined {
  const address: unknown =
    typeof socket === 'object' && socket !== null ? Reflect.get(socket, 'remoteAddress') : undefined;
  return typeof address === 'string' ? address : undefined;
}
