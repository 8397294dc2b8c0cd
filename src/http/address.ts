import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { mappedIPv4 } from '../pki/x509/general-name.ts';
import { isObject } from '../process/protocol.ts';

/** An IPv4 address in IPv4 form, also from a dual-stack socket or a proxy. */
export const networkAddress = (address: string | undefined): string =>
  address === undefined ? 'unknown' : (mappedIPv4(address) ?? address);

/** Addresses reported by a balancer (proxy-connection.ts) or a proxy (forwarded-client.ts). */
const told = new WeakMap<object, string>();

/** Sets the client's address for a connection or a request. */
export const setClientAddress = (of: Duplex | IncomingMessage, address: string): void =>
  void told.set(of, networkAddress(address));

export const requestAddress = (request: IncomingMessage): string => told.get(request) ?? clientAddress(request.socket);

/** The peers of connections. */
const peers = new WeakMap<object, string>();

/** The client's network address of a connection, even if it is closed. */
export function clientAddress(socket: Duplex): string {
  const transport = transportOf(socket);
  const known = told.get(socket) ?? told.get(transport) ?? peers.get(transport);
  if (known !== undefined) return known;
  // A destroyed TLSSocket forgets its peer; the TCP socket keeps it, since its address was read before.
  const peer = remoteAddressOf(socket) ?? remoteAddressOf(transport);
  const address = networkAddress(peer);
  if (peer !== undefined) peers.set(transport, address);
  return address;
}

/** The TCP socket of a connection, also below TLS. */
export function transportOf(socket: object): object {
  const below: unknown = Reflect.get(socket, '_parent');
  return isObject(below) ? below : socket;
}

function remoteAddressOf(socket: object): string | undefined {
  const address: unknown = Reflect.get(socket, 'remoteAddress');
  return typeof address === 'string' ? address : undefined;
}
