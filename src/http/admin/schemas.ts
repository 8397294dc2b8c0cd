/** Building blocks of the route schemas, which both validate requests and generate GET /admin/openapi.json. */
import { type TProperties, type TSchema, Type } from '@fastify/type-provider-typebox';
import { badRequest } from '../../errors.ts';
import { InputError } from '../../pki/input-error.ts';
import { readTimestamp } from '../../timestamp.ts';

/** An object that rejects unknown fields. A title becomes its name in the OpenAPI description. */
export const strictObject = <T extends TProperties>(
  properties: T,
  options: { title?: string; description?: string } = {},
) => Type.Object(properties, { additionalProperties: false, ...options });

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const oneOf = <const T extends readonly string[]>(values: T, options: { description?: string } = {}) =>
  Type.Unsafe<T[number]>(Type.String({ enum: [...values], ...options }));

/** A query's `true` or `false`; absent: false. */
export const flag = (description: string) => Type.Optional(oneOf(['true', 'false'], { description }));

export const Timestamp = (description?: string) =>
  Type.String({ format: 'date-time', ...(description === undefined ? {} : { description }) });

/** A filter for the whole value. */
export const whole = (description: string) => Type.Optional(Type.String({ maxLength: 1024, description }));

/** A filter for a substring. */
export const part = (description: string) =>
  Type.Optional(Type.String({ maxLength: 1024, description: `A part of ${description}; case-insensitive.` }));

export const ErrorBody = Type.Object(
  {
    statusCode: Type.Integer(),
    error: Type.String({ description: 'The reason phrase of the status.' }),
    code: Type.String({ description: 'A stable code for programs.' }),
    message: Type.String({ description: 'One sentence for people.' }),
  },
  { title: 'Error', description: 'The body of every error response.' },
);

const ERROR_MEANINGS = {
  400: 'A parameter or the body is malformed. The message names the field.',
  401: 'The call has no valid admin credentials. The response has WWW-Authenticate: Bearer.',
  403: 'The call needs a role that the caller does not have, or a browser sent it for a page of another site.',
  404: 'The object does not exist.',
  405: 'The path does not support this method. The header Allow lists those it supports.',
  409: 'The current state does not allow the call.',
  413: 'The body is larger than server.body_limit, or has too many rows.',
  415: 'The call does not accept this Content-Type.',
  500: 'The server failed. The log has the reason.',
  503: 'The store or the audit log is temporarily unavailable.',
} as const;

export type ErrorStatus = keyof typeof ERROR_MEANINGS;

/** The `response` entries of these errors, in addition to those of every authenticated call. */
export function errorResponses(...statuses: readonly ErrorStatus[]): Record<number, TSchema> {
  const all = new Set<ErrorStatus>([...statuses, 401, 403, 500, 503]);
  return Object.fromEntries(
    [...all].sort().map((status) => [status, { ...ErrorBody, 'x-response-description': ERROR_MEANINGS[status] }]),
  );
}

/** The query of every list. */
export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 100,
      description: 'The largest number of items in one response.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 1024, description: 'next_cursor of the previous response; absent for the first page.' }),
  ),
};

export const listOf = <T extends TSchema>(item: T, description: string) =>
  Type.Object(
    { items: Type.Array(item), next_cursor: nullable(Type.String({ description: 'null at the end of the list.' })) },
    { description },
  );

export const DEFAULT_LIMIT = 100;

export const TIMESTAMP_RULE = 'must be an ISO 8601 timestamp with Z or an offset, like 2030-01-31T12:00:00Z';

export const formatTimestamp = (ms: number): string => new Date(ms).toISOString();

export const formatOptionalTimestamp = (ms: number | null): string | null => (ms === null ? null : formatTimestamp(ms));

/**
 * Parses an ISO 8601 timestamp with `Z` or a numeric offset.
 * @param field the name for the error message
 * @throws {EstuaryError} 400 `FIELD_INVALID` for malformed text, without an offset, or for a day that does not exist
 */
export function parseTimestamp(field: string, text: string): number {
  const ms = readTimestamp(text);
  if (ms === undefined) throw badRequest('FIELD_INVALID', `${field} ${TIMESTAMP_RULE}`);
  return ms;
}

export const parseOptionalTimestamp = (field: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseTimestamp(field, text);

/** @throws EstuaryError 400 that names the field and its form */
export function readable<T>(field: string, form: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw badRequest('FIELD_INVALID', `${field} must be ${form}: ${error.message}`);
  }
}
