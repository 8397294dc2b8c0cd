/** Building blocks of the route schemas, which both validate requests and generate GET /admin/openapi.json. */
import { type TProperties, type TSchema, Type } from '@fastify/type-provider-typebox';

/** An object that rejects unknown fields. A title becomes its name in the OpenAPI description. */
export const strictObject = <T extends TProperties>(
  properties: T,
  options: { title?: string; description?: string } = {},
) => Type.Object(properties, { additionalProperties: false, ...options });

/** An object whose title becomes its name in the OpenAPI description. */
export const titled = <T extends TProperties>(title: string, description: string, properties: T) =>
  Type.Object(properties, { title, description });

export const described = <T extends TProperties>(description: string, properties: T) =>
  Type.Object(properties, { description });

/** {@link titled}, without unknown fields. */
export const requestBody = <T extends TProperties>(title: string, description: string, properties: T) =>
  strictObject(properties, { title, description });

export const Text = (description: string) => Type.String({ description });
export const Texts = (description: string) =>
  Type.Unsafe<readonly string[]>(Type.Array(Type.String(), { description }));
export const Integer = (description: string) => Type.Integer({ description });
export const Bool = (description: string) => Type.Boolean({ description });

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

export const ErrorBody = titled('Error', 'The body of every error response.', {
  statusCode: Type.Integer(),
  error: Text('The reason phrase of the status.'),
  code: Text('A stable code for programs.'),
  message: Text('One sentence for people.'),
});

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
  described(description, {
    items: Type.Array(item),
    next_cursor: nullable(Text('null at the end of the list.')),
    total: Type.Optional(
      described('With `total=true`.', { count: Type.Integer(), exact: Bool('false: there are or may be more.') }),
    ),
  });

export const DEFAULT_LIMIT = 100;
