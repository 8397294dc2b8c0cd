/** Connections that fail before a request: in the handshake, or in Node's HTTP parser. */
import { STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { ErrorCode, EstuaryError } from '../errors.ts';
import { clientAddress } from './address.ts';
import { discardRest, endGently, isEnding } from './closing.ts';
import { exchangeOf, REQUEST_ID_HEADER, type Exchanges } from './exchange.ts';
import './refused-certificates.ts';

/** The response to a broken request. */
export interface Refusal {
  readonly status: number;
  readonly code: ErrorCode;
  readonly text: string;
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: 'HEADERS_TOO_LARGE', text: 'The request headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'REQUEST_TIMEOUT', text: 'The request took too long to arrive.' },
};
const MALFORMED: Refusal = { status: 400, code: 'HTTP_INVALID', text: 'The request is not valid HTTP.' };

/** An error in the format of a listener. */
type Form = (refusal: Refusal) => { readonly type: string; readonly body: string };

const plainText: Form = ({ text }) => ({ type: 'text/plain; charset=utf-8', body: text });

/**
 * Responds and closes; drops connections that were reset, never became secure or never spoke HTTP. What follows a
 * complete request never replaces its response, which is sent first (RFC 9112 §9.3.2).
 * @param form the listener's error format; default: plain text
 */
export function answerBrokenRequests(server: Server, exchanges: Exchanges, form: Form = plainText): void {
  const waiting = new WeakSet<Duplex>();
  const refuse = (socket: Duplex, cause: string | undefined): void => {
    if (!socket.writable || isEnding(socket)) return;
    if (exchanges.hasAnswered(socket)) {
      endGently(socket);
      return;
    }
    const refusal = REFUSALS[cause ?? ''] ?? MALFORMED;
    const { requestId } = exchanges.refused(socket, refusal.status, refusal.code, cause);
    const { type, body } = form(refusal);
    endGently(
      socket,
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}\r\n${REQUEST_ID_HEADER}: ${requestId}\r\n` +
        `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  };
  // Without a listener, Node closes the connection.
  server.on('connect', (_request, socket) => refuse(socket, 'CONNECT'));
  // Fastify installs its own handler.
  server.removeAllListeners('clientError');
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (waiting.has(socket) || isEnding(socket)) return;
    if (isStaleError(error, socket)) {
      // Otherwise Node never considers a response on it finished.
      Reflect.set(socket, '_hadError', false);
      return;
    }
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const due = exchanges.due(socket);
    if (due === undefined) {
      refuse(socket, error.code);
      return;
    }
    waiting.add(socket);
    discardRest(socket);
    due.once('close', () => refuse(socket, error.code));
  });
  // Before Node's own listener, which turns it into a clientError: an insecure socket can only be destroyed.
  server.prependListener('tlsClientError', (error: Error, socket: TLSSocket) => {
    exchanges.handshakeFailed(clientAddress(socket), reasonOf(error, socket));
    socket.destroy();
  });
}

/** Responds before Fastify sees the request. */
export const refuseEarly =
  (form: Form = plainText) =>
  (response: ServerResponse, { status, code, message, retryAfter }: EstuaryError): void => {
    const exchange = exchangeOf(response.req);
    exchange.code = code;
    const { type, body } = form({ status, code, text: message });
    const headers = {
      [REQUEST_ID_HEADER]: exchange.requestId,
      ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
    };
    response
      .writeHead(status, { ...headers, 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
      .end(body);
  };

/**
 * OpenSSL's error queue belongs to the thread: the next read on any connection reports what one call leaves there.
 * During a handshake OpenSSL verifies signatures in the client's chain even if it does not decide about it; an invalid
 * one leaves a non-TLS error behind. The connection itself is sound.
 */
function isStaleError(error: Error, socket: Duplex): boolean {
  const library: unknown = Reflect.get(error, 'library');
  return socket instanceof TLSSocket && typeof library === 'string' && library !== 'SSL routines';
}

function reasonOf(error: Error, socket: TLSSocket): string {
  const refused: unknown = socket.authorizationError;
  if (typeof refused === 'string') return `client certificate refused: ${refused}`;
  return error.message === 'socket hang up' ? 'the client closed the connection' : error.message;
}
