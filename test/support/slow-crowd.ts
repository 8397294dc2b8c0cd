/** A crowd of slow clients on one listener: each kind holds its connection as long as the server lets it. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ListenerName } from './server-process.ts';

export const SLOW_KINDS = ['slow TLS', 'slow headers', 'slow body', 'never reading', 'idle keep-alive'] as const;
export type SlowKind = (typeof SLOW_KINDS)[number];

export interface Place {
  readonly listener: ListenerName;
  readonly port: number;
  /** PEM of the server's CA. */
  readonly ca: string;
  /** Where the crowd comes from: a limit for one address must not meet the others. */
  readonly localAddress: string;
}

/** Milliseconds between two octets of a slow client. */
const PACE = 200;

/** The beginning of a TLS record that says it holds a ClientHello of 500 octets. */
const HELLO = Buffer.from('16030101f4010001f00303', 'hex');

/** Something that is answered without authentication, and something that takes a body. */
const REQUESTS: Readonly<Record<ListenerName, { readonly get: string; readonly post: string; readonly type: string }>> =
  {
    est: {
      get: '/.well-known/est/cacerts',
      post: '/.well-known/est/simpleenroll',
      type: 'application/pkcs10',
    },
    admin: { get: '/healthz', post: '/admin/otp', type: 'application/json' },
    publication: { get: '/crl/devices.crl', post: '/ocsp/devices', type: 'application/ocsp-request' },
  };

/**
 * Joins the crowd.
 *
 * @returns the connection, once the client has begun to be slow
 */
export async function beSlow(kind: SlowKind, place: Place): Promise<Socket> {
  const { get, post, type } = REQUESTS[place.listener];
  const head = `GET ${get} HTTP/1.1\r\nHost: x\r\n`;
  if (kind === 'slow TLS') {
    const socket = await open(place, false);
    socket.write(place.listener === 'publication' ? head : HELLO);
    return dripping(socket);
  }
  const socket = await open(place, place.listener !== 'publication');
  switch (kind) {
    case 'slow headers':
      socket.write(`${head}X-Slow: `);
      return dripping(socket);
    case 'slow body':
      socket.write(`POST ${post} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 900\r\n\r\n`);
      return dripping(socket);
    case 'never reading':
      socket.pause();
      socket.write(`${head}\r\n`.repeat(100));
      return socket;
    case 'idle keep-alive':
      socket.write(`${head}\r\n`);
      // It can have been cut before.
      if (socket.destroyed) return socket;
      await new Promise((resolve) => socket.once('data', resolve).once('close', resolve));
      return socket;
  }
}

function open({ port, ca, localAddress }: Place, tls: boolean): Promise<Socket> {
  const at = { host: '127.0.0.1', port, localAddress };
  return new Promise((resolve) => {
    const socket = tls ? connectTls({ ...at, servername: 'localhost', ca }) : connectTcp(at);
    // Refused or cut is what it came for.
    socket.on('error', () => resolve(socket)).once(tls ? 'secureConnect' : 'connect', () => resolve(socket));
    socket.resume();
  });
}

function dripping(socket: Socket): Socket {
  const drip = setInterval(() => socket.write('a'), PACE);
  socket.once('close', () => clearInterval(drip));
  if (socket.destroyed) clearInterval(drip);
  return socket;
}

/** So many of them, some at a time. */
export async function crowd(kind: SlowKind, count: number, place: Place): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const batch = Math.min(50, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: batch }, () => beSlow(kind, place)))));
  }
  return sockets;
}
