/** Requests that Node's HTTP parser gives up on never reach a handler; they get their plain-text 4xx here. */
import type { Server } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Logger } from '../log.ts';

interface Refusal {
  readonly line: string;
  readonly text: string;
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { line: '431 Request Header Fields Too Large', text: 'The request headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { line: '408 Request Timeout', text: 'The request took too long to arrive.' },
};
const MALFORMED: Refusal = { line: '400 Bad Request', text: 'The request is not valid HTTP.' };

/** Answers and closes; a connection that was reset or never spoke HTTP is just dropped. */
export function answerBrokenRequests(server: Server, log: Logger): void {
  // Fastify installs a handler of its own that answers JSON.
  server.removeAllListeners('clientError');
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const refusal = REFUSALS[error.code ?? ''] ?? MALFORMED;
    log.info({ code: error.code }, 'request refused by the HTTP parser');
    socket.end(
      `HTTP/1.1 ${refusal.line}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
        `Content-Length: ${refusal.text.length}\r\nConnection: close\r\n\r\n${refusal.text}`,
    );
  });
  server.on('tlsClientError', (error: NodeJS.ErrnoException) => {
    log.info({ detail: error.message }, 'TLS handshake failed');
  });
}
