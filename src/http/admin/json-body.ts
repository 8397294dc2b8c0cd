/** Bodies of the admin API: JSON in UTF-8 and nothing else. */
import type { FastifyRequest } from 'fastify';
import type { AdminApp } from './dependencies.ts';
import { isBulkType, MAX_BULK_BODY } from './bulk/bulk.ts';
import { badRequest, errorWith } from '../../errors.ts';

/** Reads bodies; what is not JSON is 400. An empty body counts as none: a DELETE may name the type of a body it lacks. */
export function registerJsonParser(app: AdminApp): void {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      const value: unknown = body.length === 0 ? undefined : JSON.parse(utf8.decode(Buffer.from(body)));
      done(null, value);
    } catch {
      done(badRequest('BODY_NOT_JSON', 'the body is not JSON in UTF-8'), undefined);
    }
  });
}

/** Whether a request says that a body follows. */
export const announcesBody = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Which bodies a route takes; JSON alone unless told. */
export interface BodyRules {
  /** NDJSON and CSV: beside JSON, or alone. */
  readonly bulk?: 'too' | 'only' | undefined;
}

/**
 * What the head says of the body, before a byte of it is read.
 *
 * @param limit of JSON, in bytes
 * @throws {EstuaryError} 415 for another type than the route takes or a compressed body, 413 for a length above the limit
 */
export function checkBodyHead({ headers }: FastifyRequest, limit: number, { bulk }: BodyRules): void {
  const type = headers['content-type'] ?? '';
  const isRows = bulk !== undefined && isBulkType(type);
  if (!isRows && (bulk === 'only' || !/^application\/json[ \t]*(?:;|$)/i.test(type)))
    throw errorWith(415, 'MEDIA_TYPE_UNSUPPORTED', `the body must be ${typesOf(bulk)}`);
  const coding = headers['content-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw errorWith(415, 'CONTENT_CODING_UNSUPPORTED', 'the body must not be compressed');
  const length = Number(headers['content-length'] ?? 0);
  if (isRows && length > MAX_BULK_BODY)
    throw errorWith(413, 'BODY_TOO_LARGE', `the body is larger than ${MAX_BULK_BODY >> 20} MiB`);
  if (!isRows && length > limit)
    throw errorWith(413, 'BODY_TOO_LARGE', 'the body is larger than server.body_limit allows');
}

function typesOf(bulk: BodyRules['bulk']): string {
  if (bulk === undefined) return 'application/json';
  return `${bulk === 'too' ? 'application/json, ' : ''}application/x-ndjson or text/csv`;
}
