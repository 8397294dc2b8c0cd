/** How connections end: a response arrives, whatever the client still sends and whichever side ends first. */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';

/** Milliseconds for a client to read its response: a connection closed at once may lose it (RFC 9112 §9.6). */
const LINGER = 2000;

const ending = new WeakSet<Duplex>();

/** Whether this side has ended. */
export const isEnding = (socket: Duplex): boolean => ending.has(socket);

/** Discards what else the client sends: it is neither a request nor part of one. */
export function discardRest(socket: Duplex): void {
  // The first makes Node's parser give up the connection; the second takes its listener away.
  const discard = (): void => undefined;
  socket.on('data', discard).removeAllListeners('data').on('data', discard).resume();
}

/** Ends this side, and discards what the client sends until it ends its own. @param last written first */
export function endGently(socket: Duplex, last = ''): void {
  if (ending.has(socket)) return;
  ending.add(socket);
  discardRest(socket);
  socket.end(last);
  const cut = setTimeout(() => socket.destroy(), LINGER);
  socket.once('close', () => clearTimeout(cut));
}

/**
 * A client that ends its side (close_notify, FIN) after a complete request still gets the response (RFC 8446 §6.1), and
 * a response that closes the connection arrives although the client still sends.
 */
export function closeGently(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Duplex) => {
    Object.assign(socket, { allowHalfOpen: true, destroySoon: () => endGently(socket) });
  });
}
