/** Requests that Node's HTTP parser gives up on never reach a handler; they get their 4xx here. */
import { STATUS_CODES, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from '../log.ts';

/** What a broken request is answered with. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly text: string;
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: 'HEADERS_TOO_LARGE', text: 'The request headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'REQUEST_TIMEOUT', text: 'The request took too long to arrive.' },
};
const MALFORMED: Refusal = { status: 400, code: 'HTTP_INVALID', text: 'The request is not valid HTTP.' };

const plainText = ({ text }: Refusal) => ({ type: 'text/plain; charset=utf-8', body: text });

/**
 * Answers and closes; a connection that was reset or never spoke HTTP is just dropped.
 *
 * @param form how the listener words its errors; plain text unless told
 */
export function answerBrokenRequests(
  server: Server,
  log: Pick<Logger, 'info'>,
  form: (refusal: Refusal) => { readonly type: string; readonly body: string } = plainText,
): void {
  // Fastify installs a handler of its own.
  server.removeAllListeners('clientError');
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const refusal = REFUSALS[error.code ?? ''] ?? MALFORMED;
    log.info({ code: error.code }, 'request refused by the HTTP parser');
    const { type, body } = form(refusal);
    socket.end(
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}\r\nContent-Type: ${type}\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
  server.on('tlsClientError', (error: NodeJS.ErrnoException) => {
    log.info({ detail: error.message }, 'TLS handshake failed');
  });
}
