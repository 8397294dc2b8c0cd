/** The cheap checks in order, on the request's head alone. */
import { type IncomingHttpHeaders, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Ca, CaRouter } from '../../ca/router.ts';
import { OPERATION_NAMES } from '../../config/vocabulary.ts';
import { badRequest, errorWith, EstuaryError, failed, notFound, type ErrorCode } from '../../errors.ts';
import { DerError } from '../../pki/der/der.ts';
import { exchangeOf, REQUEST_ID_HEADER } from '../exchange.ts';
import { defaultHeaders, refuseTrailingSlash } from '../request-head.ts';
import type { EstAnswer, EstOperation, OperationName } from './operation.ts';

const PREFIX = '/.well-known/est/';

/** 405, with the allowed methods. */
class MethodNotAllowed extends EstuaryError {
  readonly allow: string;

  constructor(operation: OperationName, allow: string) {
    super(405, 'METHOD_NOT_ALLOWED', `${operation} supports only ${allow}.`);
    this.allow = allow;
  }
}

export interface EstRoute {
  readonly ca: Ca;
  readonly operation: EstOperation;
  /** What the path names behind the operation, which only {@link WITH_ID} has. */
  readonly id: string | undefined;
  readonly namesLabel: boolean;
}

const WITH_ID: OperationName = 'renewal-info';

/**
 * Checks label, operation, enablement and method, in this order.
 * @param url the request target: path and, ignored, a query
 * @throws EstuaryError 404, 501 or 405
 */
export function resolveRoute(
  router: CaRouter,
  operations: ReadonlyMap<OperationName, EstOperation>,
  method: string,
  url: string,
): EstRoute {
  const { label, name, id } = parsePath(url);
  const ca = router.find(label);
  const operation = OPERATION_NAMES.find((known) => known === name);
  if (operation === undefined) throw notFound('UNKNOWN_OPERATION', 'This operation is not an EST operation.');
  const handler = operations.get(operation);
  if (handler?.enabled !== true) throw errorWith(501, 'OPERATION_OFF', `This server does not offer ${operation}.`);
  handler.checkOffered?.(ca);
  const methods: readonly string[] = handler.method === 'GET' ? ['GET', 'HEAD'] : [handler.method];
  if (!methods.includes(method)) throw new MethodNotAllowed(operation, methods.join(', '));
  return { ca, operation: handler, id, namesLabel: label !== undefined };
}

interface EstPath {
  readonly label: string | undefined;
  readonly name: string;
  readonly id: string | undefined;
}

function parsePath(url: string): EstPath {
  const path = url.split('?', 1)[0] ?? '';
  if (path.includes('//'))
    throw notFound('NOT_FOUND', 'The path has an empty segment: write one slash instead of two in a row.');
  if (path !== PREFIX) refuseTrailingSlash(path);
  if (!path.startsWith(PREFIX)) throw notFound('NOT_FOUND', `EST is served below ${PREFIX}.`);
  const segments = path.slice(PREFIX.length).split('/').map(decodeSegment);
  const id = segments.at(-2) === WITH_ID ? segments.pop() : undefined;
  const [first = '', second, ...more] = segments;
  if (more.length > 0) throw notFound('NOT_FOUND', 'This path is not an EST path.');
  return second === undefined ? { label: undefined, name: first, id } : { label: first, name: second, id };
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw badRequest('BAD_PATH', 'The request path is not valid percent-encoding.');
  }
}

/** Checks Content-Type, encodings and the announced size. @throws EstuaryError 400, 413 or 415 */
export function checkBodyHead(operation: EstOperation, headers: IncomingHttpHeaders, bodyLimit: number): void {
  if (operation.requestType === undefined) return;
  const contentType = headers['content-type'];
  if (contentType === undefined || contentType.trim() === '')
    throw badRequest('CONTENT_TYPE_MISSING', `The request needs Content-Type: ${operation.requestType}.`);
  const mediaType = contentType.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== operation.requestType)
    throw errorWith(415, 'CONTENT_TYPE_WRONG', `${operation.name} accepts only ${operation.requestType}.`);
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
    throw errorWith(415, 'CONTENT_CODING_UNSUPPORTED', 'The request body must not be compressed.');
  const transfer = headers['transfer-encoding']?.trim().toLowerCase();
  if (transfer !== undefined && transfer !== 'chunked')
    throw badRequest('TRANSFER_ENCODING', 'The only transfer coding supported is chunked.');
  if (Number(headers['content-length'] ?? 0) > bodyLimit) throw bodyTooLarge(bodyLimit);
}

export function bodyTooLarge(bodyLimit: number): EstuaryError {
  return errorWith(413, 'BODY_TOO_LARGE', `The request body is larger than ${bodyLimit} bytes.`);
}

/** Writes EST responses and errors. The only place where an error becomes HTTP on this listener. */
export interface ErrorPolicy {
  /** GSSAPI is on: 401 also offers Negotiate. */
  readonly negotiate: boolean;
  /** The label accepts JSON Web Tokens: 401 also offers Bearer. */
  readonly bearer: boolean;
}

/**
 * Writes conventional header case, and head and body in one write: libest compares names case-sensitively, and
 * strongSwan needs the response in at most two reads. Fastify's own reply uses lowercase names.
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
    // Node's response object does not know it.
    exchange.status = answer.status;
    writeHttp10(response, answer.status, headers, answer.body);
    return;
  }
  response.writeHead(answer.status, headers);
  response.end(answer.body, 'latin1');
}

/**
 * An HTTP/1.0 request gets an HTTP/1.0 response, after which the connection closes. Debian's libest sends 1.0 and
 * accepts only 1.0; RFC 9110 §2.5 allows the lower version. Node's ServerResponse can only send 1.1, so this writes to
 * the socket.
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
  const send = (socket: Socket): void => {
    socket.write(response.req.method === 'HEAD' ? head : head + body, 'latin1');
    socket.destroySoon();
  };
  // Only after the responses to earlier requests.
  if (response.socket === null) response.once('socket', send);
  else send(response.socket);
}

/** The public error for any thrown value; unexpected ones become a 500 without details. */
export function asEstuaryError(error: unknown): EstuaryError {
  if (error instanceof EstuaryError) return error;
  if (error instanceof DerError) {
    return errorWith(400, 'MALFORMED_DER', 'The request body is not the expected DER structure.', {
      detail: error.message,
    });
  }
  return failed('INTERNAL_ERROR', 'The server could not process the request.', {
    detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
    cause: error,
  });
}

/**
 * The WWW-Authenticate of every 401 (RFC 9110 §15.5.2). libest reads only the first challenge, so Basic comes first.
 */
export function challenge({ negotiate, bearer }: ErrorPolicy, code?: ErrorCode): string | readonly string[] {
  const basic = 'Basic realm="est"';
  if (!negotiate && !bearer) return basic;
  // RFC 6750 §3: the error only if a token was presented.
  const error = code === 'JWT_INVALID' ? ', error="invalid_token"' : '';
  return [basic, ...(negotiate ? ['Negotiate'] : []), ...(bearer ? [`Bearer realm="est"${error}`] : [])];
}

/** Plain text, one sentence; a 401 that only challenges has an empty body. */
export function errorAnswer(error: EstuaryError, policy: ErrorPolicy): Omit<EstAnswer, 'status'> & { status: number } {
  const headers: Record<string, string | readonly string[]> = {};
  if (error.message !== '') headers['Content-Type'] = 'text/plain; charset=utf-8';
  if (error.status === 401) headers['WWW-Authenticate'] = challenge(policy, error.code);
  if (error instanceof MethodNotAllowed) headers['Allow'] = error.allow;
  if (error.retryAfter !== undefined) headers['Retry-After'] = String(Math.max(1, Math.ceil(error.retryAfter)));
  // Do not read the rest of a body that is too large.
  if (error.status === 413) headers['Connection'] = 'close';
  // The body's characters are bytes (Latin-1); an administrator's reason may be in any language, so encode it as UTF-8.
  return { status: error.status, headers, body: Buffer.from(error.message, 'utf8').toString('latin1') };
}
