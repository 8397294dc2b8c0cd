/** Bodies of the admin API: only JSON in UTF-8. */
import { STATUS_CODES } from 'node:http';
import SerializerSelector from '@fastify/fast-json-stringify-compiler';
import type { FastifyRequest, FastifySerializerCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { codeOf, badRequest, type ErrorCode, errorWith, EstuaryError } from '../../errors.ts';
import { isBulkType, MAX_BULK_BODY } from './bulk/bulk.ts';
import type { AdminApp } from './dependencies.ts';

/**
 * Parses bodies; invalid JSON is 400. An empty body counts as absent: a DELETE may have a Content-Type without a body.
 */
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

export const announcesBody = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Which bodies a route accepts; default: only JSON. */
interface BodyRules {
  /** NDJSON and CSV, in addition to JSON or alone. */
  readonly bulk?: 'too' | 'only' | undefined;
}

/**
 * Checks the headers before the body is read.
 * @param limit of JSON, in bytes
 * @throws {EstuaryError} 400 without a type, 415 for an unsupported type or a compressed body, 413 for a length above the limit
 */
export function checkBodyHead({ headers }: FastifyRequest, limit: number, { bulk }: BodyRules): void {
  const type = headers['content-type'] ?? '';
  if (type.trim() === '')
    throw badRequest('CONTENT_TYPE_MISSING', `the request needs the header Content-Type: ${typesOf(bulk)}`);
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

const compile = SerializerSelector()();

/**
 * Compiles serializers as Fastify does, but lazily. Compiling all four hundred, mostly for unused error responses, took
 * longer than the rest of the admin listener's start.
 */
export const serializerCompiler: FastifySerializerCompiler<TSchema> = ({ httpStatus = '', ...route }) => {
  let serialize: ReturnType<typeof compile> | undefined;
  return (value: unknown) => (serialize ??= compile({ httpStatus, ...route }))(value);
};

/** Error responses of the admin API: `{statusCode, error, code, message}`. */
interface ErrorAnswer {
  readonly statusCode: number;
  readonly error: string;
  readonly code: ErrorCode;
  readonly message: string;
}

export function errorAnswer(statusCode: number, code: ErrorCode, message: string): ErrorAnswer {
  return { statusCode, error: STATUS_CODES[statusCode] ?? 'Error', code, message };
}

/** Our texts for Fastify's own errors. */
const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [status: number, code: ErrorCode, message: string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'MEDIA_TYPE_UNSUPPORTED', 'the body must be application/json'],
  FST_ERR_CTP_BODY_TOO_LARGE: [413, 'BODY_TOO_LARGE', 'the body is larger than server.body_limit allows'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    400,
    'BODY_LENGTH_MISMATCH',
    'the length of the body differs from Content-Length',
  ],
  FST_ERR_BAD_URL: [400, 'BAD_PATH', 'the path is not a valid URL path'],
  FST_ERR_MAX_PARAM_LENGTH: [414, 'URL_TOO_LONG', 'a part of the path is too long'],
};

/** The response for any error. Unexpected errors become a bare 500. */
export function toErrorAnswer(thrown: unknown): ErrorAnswer {
  if (thrown instanceof EstuaryError) return errorAnswer(thrown.status, thrown.code, thrown.message);
  const code = codeOf(thrown);
  const known = FRAMEWORK_ERRORS[code];
  if (known !== undefined) return errorAnswer(...known);
  if (code === 'ECONNRESET' || code === 'ECONNABORTED')
    return errorAnswer(400, 'BODY_INCOMPLETE', 'the connection closed before the body was complete');
  return errorAnswer(500, 'INTERNAL_ERROR', 'the request failed inside the server');
}
