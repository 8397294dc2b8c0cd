/** The cheap checks, in their order, from the request's head alone. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Ca, CaRouter } from '../../ca/router.ts';
import { OPERATION_NAMES } from '../../config/vocabulary.ts';
import { badRequest, errorWith, EstuaryError, notFound } from '../../errors.ts';
import type { EstOperation, OperationName } from './operation.ts';

const PREFIX = '/.well-known/est/';

/** 405, with what is allowed instead. */
export class MethodNotAllowed extends EstuaryError {
  readonly allow: string;

  constructor(operation: OperationName, allow: string) {
    super(405, 'METHOD_NOT_ALLOWED', `${operation} takes ${allow} only.`);
    this.allow = allow;
  }
}

export interface EstRoute {
  readonly ca: Ca;
  readonly operation: EstOperation;
}

/**
 * Label → operation → switched on → method.
 *
 * @param url the request target: path and, ignored, a query
 * @throws EstuaryError 404, 501 or 405
 */
export function resolveRoute(
  router: CaRouter,
  operations: ReadonlyMap<OperationName, EstOperation>,
  method: string,
  url: string,
): EstRoute {
  const { label, name } = parsePath(url);
  const ca = router.find(label);
  const operation = OPERATION_NAMES.find((known) => known === name);
  if (operation === undefined) throw notFound('UNKNOWN_OPERATION', 'There is no such EST operation.');
  const handler = operations.get(operation);
  if (handler?.enabled !== true) throw errorWith(501, 'OPERATION_OFF', `This server does not offer ${operation}.`);
  handler.checkOffered?.(ca);
  const methods: readonly string[] = handler.method === 'GET' ? ['GET', 'HEAD'] : [handler.method];
  if (!methods.includes(method)) throw new MethodNotAllowed(operation, methods.join(', '));
  return { ca, operation: handler };
}

function parsePath(url: string): { label: string | undefined; name: string } {
  const path = url.split('?', 1)[0] ?? '';
  if (!path.startsWith(PREFIX)) throw notFound('NOT_FOUND', `EST is served below ${PREFIX}.`);
  const segments = path.slice(PREFIX.length).split('/').map(decodeSegment);
  const [first = '', second, ...more] = segments;
  if (more.length > 0) throw notFound('NOT_FOUND', 'There is no such EST path.');
  return second === undefined ? { label: undefined, name: first } : { label: first, name: second };
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw badRequest('BAD_PATH', 'The request path is not valid percent-encoding.');
  }
}

/**
 * Content-Type, encodings and the announced size.
 *
 * @throws EstuaryError 400, 413 or 415
 */
export function checkBodyHead(operation: EstOperation, headers: IncomingHttpHeaders, bodyLimit: number): void {
  if (operation.requestType === undefined) return;
  const contentType = headers['content-type'];
  if (contentType === undefined || contentType.trim() === '')
    throw badRequest('CONTENT_TYPE_MISSING', `The request needs Content-Type: ${operation.requestType}.`);
  const mediaType = contentType.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== operation.requestType)
    throw errorWith(415, 'CONTENT_TYPE_WRONG', `${operation.name} takes ${operation.requestType} only.`);
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
    throw errorWith(415, 'CONTENT_ENCODING', 'The request body must not be compressed.');
  const transfer = headers['transfer-encoding']?.trim().toLowerCase();
  if (transfer !== undefined && transfer !== 'chunked')
    throw badRequest('TRANSFER_ENCODING', 'The only transfer coding supported is chunked.');
  if (Number(headers['content-length'] ?? 0) > bodyLimit) throw bodyTooLarge(bodyLimit);
}

/** 413 for a body above `server.body_limit` bytes. */
export function bodyTooLarge(bodyLimit: number): EstuaryError {
  return errorWith(413, 'BODY_TOO_LARGE', `The request body is larger than ${bodyLimit} bytes.`);
}
