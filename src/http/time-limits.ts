/** Time limits for clients of any listener. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Milliseconds between Node's checks for slow requests; its default of 30 s is longer than most limits. */
export const checkingInterval = (headersTimeout: number): number => Math.min(headersTimeout, 5000);

/** Minimum octets per second for reading a long response. */
const SLOWEST = 16 * 1024;

/**
 * Disconnects a client that does not read its response. Data in kernel buffers counts as read.
 * @param timeout milliseconds for a short response
 * @param slowest additional time: octets per second
 */
export function boundAnswers(server: Server, timeout: number, slowest = SLOWEST): void {
  // Before listeners that may respond at once.
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    response.once('prefinish', () => {
      const { socket } = response;
      if (socket === null) return;
      const cut = setTimeout(() => socket.destroy(), timeout + (socket.writableLength / slowest) * 1000);
      response.once('close', () => clearTimeout(cut));
    });
  });
}
