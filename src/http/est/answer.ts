/** Writes EST answers and errors. The one place where an error becomes HTTP on this listener. */
import { STATUS_CODES, type ServerResponse } from 'node:http';
import { errorWith, EstuaryError, failed } from '../../errors.ts';
import { DerError } from '../../pki/der/der.ts';
import { exchangeOf, REQUEST_ID_HEADER } from '../exchange.ts';
import { defaultHeaders } from '../request-head.ts';
import type { EstAnswer } from './operation.ts';
import { MethodNotAllowed } from './route.ts';

export interface ErrorPolicy {
  /** GSSAPI is on: 401 offers Negotiate as well. */
  readonly negotiate: boolean;
}

/**
 * Header names in their usual case and header plus body in one write: libest compares names by case, strongSwan wants
 * the answer in at most two reads. That is why Fastify's own reply (lower-case names) is not used here.
 */
export function writeAnswer(response: ServerResponse, answer: Omit<EstAnswer, 'status'> & { status: number }): void {
  const exchange = exchangeOf(response.req);
  const headers: Record<string, string | string[]> = {
    [REQUEST_ID_HEADER]: exchange.requestId,
    ...defaultHeaders(response, answer.status),
  };
  for (const [name, value] of Object.entries(answer.headers)) {
    headers[name] = typeof value === 'string' ? value : [...value];
  }
  if (answer.status !== 204) headers['Content-Length'] = String(Buffer.byteLength(answer.body, 'latin1'));
  if (response.req.httpVersion === '1.0') {
    // Node's response does not know of it.
    exchange.status = answer.status;
    writeHttp10(response, answer.status, headers, answer.body);
    return;
  }
  response.writeHead(answer.status, headers);
  response.end(answer.body, 'latin1');
}

/**
 * An HTTP/1.0 request gets an HTTP/1.0 answer, after which the connection closes. Debian's libest asks in 1.0 and takes
 * nothing but 1.0 for an answer; RFC 9110 §2.5 allows the lower version to such clients. Node's ServerResponse can only
 * say 1.1, so this goes to the socket.
 */
function writeHttp10(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string | readonly string[]>>,
  body: string,
): void {
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}\r\n`),
  );
  const date = `Date: ${new Date().toUTCString()}\r\n`;
  const head = `HTTP/1.0 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n${lines.join('')}${date}Connection: close\r\n\r\n`;
  const socket = response.socket;
  socket?.write(response.req.method === 'HEAD' ? head : head + body, 'latin1');
  socket?.destroySoon();
}

/** Anything thrown, as the error it is to the outside; what we did not foresee is a 500 without a word of why. */
export function asEstuaryError(error: unknown): EstuaryError {
  if (error instanceof EstuaryError) return error;
  if (error instanceof DerError) {
    return errorWith(400, 'MALFORMED_DER', 'The request body is not the DER structure expected.', {
      detail: error.message,
    });
  }
  return failed('INTERNAL', 'The server could not process the request.', {
    detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
    cause: error,
  });
}

/** What every 401 carries (RFC 9110 §15.5.2). libest reads only the first of these, so Basic comes first. */
export function challenge({ negotiate }: ErrorPolicy): string | readonly string[] {
  return negotiate ? ['Basic realm="est"', 'Negotiate'] : 'Basic realm="est"';
}

/** Plain text, one sentence; a 401 that only challenges has an empty message and so an empty body. */
export function errorAnswer(error: EstuaryError, policy: ErrorPolicy): Omit<EstAnswer, 'status'> & { status: number } {
  const headers: Record<string, string | readonly string[]> = {};
  if (error.message !== '') headers['Content-Type'] = 'text/plain; charset=utf-8';
  if (error.status === 401) headers['WWW-Authenticate'] = challenge(policy);
  if (error instanceof MethodNotAllowed) headers['Allow'] = error.allow;
  if (error.retryAfter !== undefined) headers['Retry-After'] = String(Math.max(1, Math.ceil(error.retryAfter)));
  // The rest of a body that is too large is not worth reading.
  if (error.status === 413) headers['Connection'] = 'close';
  // The body is bytes in Latin-1; an administrator's reason may be in any language, and goes out as UTF-8.
  return { status: error.status, headers, body: Buffer.from(error.message, 'utf8').toString('latin1') };
}
