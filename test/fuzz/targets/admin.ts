/** Admin API input outside the schemas: cursors, timestamps, and JSON bodies. */
import { Type } from '@fastify/type-provider-typebox';
import { pageOf } from '../../../src/http/admin/route.ts';
import { nullable, oneOf, pageQuery, strictObject, Timestamp } from '../../../src/http/admin/schemas.ts';
import { validatorCompiler } from '../../../src/http/admin/validation.ts';
import { formatTimestamp } from '../../../src/timestamp.ts';
import { parseTimestamp } from '../../../src/http/admin/values.ts';
import { readCursor, readPosition } from '../../../src/store/page.ts';
import { isClientError, unlessRefused, type Target } from '../target.ts';

const query = strictObject({
  status: Type.Optional(oneOf(['valid', 'revoked'])),
  from: Type.Optional(Timestamp()),
  ...pageQuery,
});
const body = strictObject({
  client_id: Type.String({ minLength: 1, maxLength: 255 }),
  max_uses: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  expires_at: Type.Optional(nullable(Timestamp())),
  labels: Type.Optional(Type.Array(Type.String())),
});
const checkQuery = validatorCompiler({ schema: query, httpPart: 'querystring', method: 'GET', url: '/' });
const checkBody = validatorCompiler({ schema: body, httpPart: 'body', method: 'POST', url: '/' });

/** One line for each thing that a request may hold. */
async function read(input: Buffer): Promise<void> {
  const text = input.toString('utf8');
  const [cursor = '', timestamp = '', search = '', ...rest] = text.split('\n');
  const attempt = (work: () => unknown): Promise<unknown> => unlessRefused(work, isClientError);
  await attempt(() => readCursor('otp', { cursor, limit: 1 }));
  await attempt(() => readPosition('audit', { cursor, limit: 1 }));
  await attempt(() => pageOf(['a', 'b', 'c'], { cursor, limit: 1 }));
  await attempt(() => formatTimestamp(parseTimestamp('field', timestamp)));
  checkQuery(Object.fromEntries(new URLSearchParams(search)));
  const json = await unlessRefused(
    (): unknown => JSON.parse(rest.join('\n')),
    (error) => error instanceof SyntaxError,
  );
  checkBody(json);
}

const cursor = (text: string): string => Buffer.from(text).toString('base64url');
const inputs = [
  [cursor('otp:7'), '2030-01-31T12:00:00Z', 'limit=10&status=valid', '{"client_id":"device-1","max_uses":3}'],
  [cursor('audit:12'), '2030-01-31T12:00:00.5+01:30', 'from=2030-01-31T12:00:00Z&cursor=x', '{"client_id":""}'],
  ['1', '1970-01-01T00:00:00Z', 'limit=0', '{"client_id":"a","expires_at":null,"labels":["x"]}'],
];

export const target: Target = {
  grammar: 'text',
  words: [
    '"client_id":',
    '"max_uses":',
    '"expires_at":',
    '"labels":',
    'limit=',
    'status=',
    'from=',
    'T24:00:00Z',
    '-02-30T',
  ],
  seeds: () => inputs.map((lines) => Buffer.from(lines.join('\n'))),
  read,
  isRefusal: isClientError,
};
