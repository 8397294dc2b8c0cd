/** How long a client may take, on any listener. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Milliseconds between Node's looks for requests that take too long to arrive; its own 30 s are longer than most limits. */
export const checkingInterval = (headersTimeout: number): number => Math.min(headersTimeout, 5000);

/** Octets a second that a client takes at least, once an answer is long. */
const SLOWEST = 16 * 1024;

/**
 * Cuts a client that does not take its answer. What the kernel has room for counts as taken.
 *
 * @param timeout milliseconds for a short answer
 * @param slowest octets a second that are added to it
 */
export function boundAnswers(server: Server, timeout: number, slowest = SLOWEST): void {
  // Before whatever may answer at once.
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    response.once('prefinish', () => {
      const { socket } = response;
      if (socket === null) return;
      const cut = setTimeout(() => socket.destroy(), timeout + (socket.writableLength / slowest) * 1000);
      response.once('close', () => clearTimeout(cut));
    });
  });
}
