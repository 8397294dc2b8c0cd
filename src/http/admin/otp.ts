import { Type, type Static } from '@fastify/type-provider-typebox';
import { tokenEvent } from '../../audit/applied-events.ts';
import type { FastifyRequest } from 'fastify';
import { badRequest, conflict, notFound } from '../../errors.ts';
import type { OtpRow } from '../../store/otp-store.ts';
import { accessEvent, actor, checkLabel, findLabel, limited } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { listRoute, route } from './route.ts';
import { Integer, nullable, oneOf, part, requestBody, Text, Timestamp, titled, whole } from './schemas.ts';
import { formatTimestamp } from '../../timestamp.ts';
import { parseTimestamp } from './values.ts';

const MAX_USES = 1_000_000;
/** Ten years with leap days: a token that outlives the fleet is a mistake. */
const MAX_TTL_MS = 3653 * 86_400_000;

export const NewOtp = requestBody('NewToken', 'The token to create.', {
  client_id: Type.String({
    minLength: 1,
    maxLength: 255,
    description: 'The client that the token is for; no control characters.',
  }),
  max_uses: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_USES,
      description: 'The number of certificates; otp.max_uses if absent.',
    }),
  ),
  expires_at: Type.Optional(Timestamp('In the future, at most ten years ahead; now + otp.default_ttl if absent.')),
  ca: Type.Optional(Text('A label: the token works only at that CA.')),
});

const ChangedOtp = requestBody('ChangedToken', 'The fields to change.', {
  expires_at: Timestamp('In the future, at most ten years ahead.'),
});

const OtpStatus = oneOf(['active', 'consumed', 'expired', 'revoked']);

export const OtpRecord = titled('Token', 'A one-time password, without its secret.', {
  id: Type.String(),
  client_id: Type.String(),
  ca: nullable(Text('The label at which the token works; null: any.')),
  created_at: Timestamp(),
  expires_at: Timestamp(),
  max_uses: Type.Integer(),
  uses: Integer('The number of uses so far.'),
  status: OtpStatus,
});

const { id, client_id, created_at, expires_at, max_uses } = OtpRecord.properties;

const CreatedOtp = titled('CreatedToken', 'The new token.', {
  id,
  token: Text('The one-time password. No other response shows it.'),
  ...{ client_id, created_at, expires_at, max_uses },
});

export function registerOtp(app: AdminApp, deps: AdminDependencies): void {
  const find = async (request: FastifyRequest<{ Params: { readonly id: string } }>): Promise<OtpRow> => {
    const row = await limited(deps, request).store.getOtp(request.params.id);
    if (row === undefined) throw otpNotFound();
    return row;
  };

  route(app, {
    call: 'POST /admin/otp',
    access: ['ra'],
    labels: 'records',
    summary: 'Create a one-time password',
    body: NewOtp,
    response: { 201: CreatedOtp },
    errors: [409],
    handler: async (request, reply) => {
      checkOtpEnabled(deps);
      const order = readOrder(request, request.body, deps);
      const { row, token } = await deps.otp.create(order, [
        accessEvent(request, 'success', `token for ${order.client_id}`),
      ]);
      return reply.code(201).send({ ...otpRecord(row, deps.now()), token });
    },
  });

  listRoute(app, deps, {
    call: 'GET /admin/otp',
    access: ['ra'],
    labels: 'records',
    summary: 'List the one-time passwords, without their secrets',
    filters: {
      client_id: whole('The complete client_id.'),
      status: Type.Optional(OtpStatus),
      search: part('the client_id, or the ID'),
    },
    item: OtpRecord,
    sorted: 'The order of creation.',
    page: (request, now) => (page) => limited(deps, request).store.listOtps({ ...request.query, ...page }, now),
    record: otpRecord,
  });

  route(app, {
    call: 'GET /admin/otp/:id',
    access: ['ra'],
    labels: 'records',
    summary: 'Get one one-time password, without its secret',
    response: { 200: OtpRecord },
    handler: async (request) => otpRecord(await find(request), deps.now()),
  });

  route(app, {
    call: 'PATCH /admin/otp/:id',
    access: ['ra'],
    labels: 'records',
    summary: 'Change the expiry date of a one-time password',
    description: 'An expired password becomes valid again; a revoked one does not.',
    body: ChangedOtp,
    response: { 200: OtpRecord },
    errors: [409],
    handler: async (request) => {
      const expires_at = readExpiry(request.body.expires_at, deps.now());
      const row = await find(request);
      const { address, request_id } = actor(request);
      const until = formatTimestamp(expires_at);
      const result = await deps.store.changeOtp(row.id, expires_at, [
        accessEvent(request, 'success', `token ${row.id} until ${until}`),
        tokenEvent({ type: 'otp.changed', token: { ...row, expires_at } }, { address, request_id }, ` until ${until}`),
      ]);
      if (result === 'unknown') throw otpNotFound();
      if (result === 'revoked') throw conflict('OTP_REVOKED', 'this token was revoked and cannot be used again');
      return otpRecord({ ...row, expires_at }, deps.now());
    },
  });

  route(app, {
    call: 'DELETE /admin/otp/:id',
    access: ['ra'],
    labels: 'records',
    summary: 'Revoke a one-time password',
    response: { 204: Type.Null({ description: 'Revoked, now or earlier.' }) },
    handler: async (request, reply) => {
      const row = await find(request);
      const { address, request_id } = actor(request);
      const revoked = await deps.store.revokeOtp(row.id, deps.now(), [
        accessEvent(request, 'success', `token ${row.id} revoked`),
        tokenEvent({ type: 'otp.revoked', token: row }, { address, request_id }),
      ]);
      if (!revoked) throw otpNotFound();
      return reply.code(204).send(null);
    },
  });
}

/** @throws EstuaryError 409 `OTP_DISABLED` */
export function checkOtpEnabled({ settings }: Pick<AdminDependencies, 'settings'>): void {
  if (!settings.otp.enabled) throw conflict('OTP_DISABLED', 'one-time passwords are disabled (otp.enabled)');
}

/** @throws EstuaryError 400 if it is in the past or too far ahead */
function readExpiry(text: string, now: number): number {
  const expires_at = parseTimestamp('expires_at', text);
  if (expires_at <= now) throw badRequest('FIELD_INVALID', 'expires_at must be in the future');
  if (expires_at > now + MAX_TTL_MS) throw badRequest('FIELD_INVALID', 'expires_at must be at most ten years ahead');
  return expires_at;
}

/** Checks beyond the schema, and defaults. */
export function readOrder(
  request: FastifyRequest,
  body: Static<typeof NewOtp>,
  { settings, cas, now }: AdminDependencies,
) {
  checkLabel(request, body.ca);
  if (/\p{Cc}/u.test(body.client_id) || body.client_id.trim() === '')
    throw badRequest('FIELD_INVALID', 'client_id must not be blank or contain control characters');
  if (body.ca !== undefined) findLabel(request, cas, body.ca);
  const expires_at =
    body.expires_at === undefined ? now() + settings.otp.default_ttl * 1000 : readExpiry(body.expires_at, now());
  return {
    client_id: body.client_id,
    max_uses: body.max_uses ?? settings.otp.max_uses,
    expires_at,
    ca: body.ca ?? null,
  };
}

export function otpRecord(row: OtpRow, now: number): Static<typeof OtpRecord> {
  return {
    id: row.id,
    client_id: row.client_id,
    ca: row.ca,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestamp(row.expires_at),
    max_uses: row.max_uses,
    uses: row.uses,
    status: otpStatus(row, now),
  };
}

function otpStatus(row: OtpRow, now: number): Static<typeof OtpRecord>['status'] {
  if (row.revoked_at !== null) return 'revoked';
  if (row.uses >= row.max_uses) return 'consumed';
  return row.expires_at <= now ? 'expired' : 'active';
}

const otpNotFound = () => notFound('OTP_NOT_FOUND', 'no token has this id');
