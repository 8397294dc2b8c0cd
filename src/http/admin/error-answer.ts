/** Failures as the admin API answers them: `{statusCode, error, code, message}`. */
import { STATUS_CODES } from 'node:http';
import { EstuaryError, type ErrorCode } from '../../errors.ts';

export interface ErrorAnswer {
  readonly statusCode: number;
  readonly error: string;
  readonly code: ErrorCode;
  readonly message: string;
}

export function errorAnswer(statusCode: number, code: ErrorCode, message: string): ErrorAnswer {
  return { statusCode, error: STATUS_CODES[statusCode] ?? 'Error', code, message };
}

/** Fastify's own refusals, in our words. */
const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [status: number, code: ErrorCode, message: string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'MEDIA_TYPE_UNSUPPORTED', 'the body must be application/json'],
  FST_ERR_CTP_BODY_TOO_LARGE: [413, 'BODY_TOO_LARGE', 'the body is larger than server.body_limit allows'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'BODY_LENGTH_MISMATCH', 'the body is not as long as Content-Length says'],
  FST_ERR_BAD_URL: [400, 'URL_INVALID', 'the path is not a valid URL path'],
  FST_ERR_MAX_PARAM_LENGTH: [414, 'URL_TOO_LONG', 'a part of the path is too long'],
};

/** What anything thrown is answered with. What is not meant for the outside becomes a bare 500. */
export function toErrorAnswer(thrown: unknown): ErrorAnswer {
  if (thrown instanceof EstuaryError) return errorAnswer(thrown.status, thrown.code, thrown.message);
  const code = thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : '';
  const known = FRAMEWORK_ERRORS[code];
  if (known !== undefined) return errorAnswer(...known);
  if (isAborted(thrown)) return errorAnswer(400, 'BODY_INCOMPLETE', 'the connection ended before the body did');
  return errorAnswer(500, 'INTERNAL_ERROR', 'the request failed inside the server');
}

function isAborted(thrown: unknown): boolean {
  return (
    thrown instanceof Error && 'code' in thrown && (thrown.code === 'ECONNRESET' || thrown.code === 'ECONNABORTED')
  );
}
