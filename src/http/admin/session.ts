import { Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { AdminSession } from '../../auth/admin-sessions.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { ADMIN_ROLES } from '../../config/vocabulary.ts';
import { notFound } from '../../errors.ts';
import { presentedCredentials } from '../credentials.ts';
import { accessEvent, actor, callerOf } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { route } from './route.ts';
import { described, Integer, nullable, oneOf, Text, Texts, Timestamp, titled } from './schemas.ts';
import { formatOptionalTimestamp, formatTimestamp } from '../../timestamp.ts';
import { CLEAR_SESSION, sessionId, setSession } from './caller.ts';

const Session = titled('Session', 'The caller.', {
  subject: Text(
    "The administrator's name: as configured, otherwise the description of the token or the subject of the certificate. The audit log shows it.",
  ),
  name: Type.Optional(Text('The display name at the OpenID provider.')),
  method: oneOf(['bearer', 'mtls', 'oidc'], { description: 'The method of authentication, now or at sign-in.' }),
  roles: Type.Array(oneOf(ADMIN_ROLES), { description: 'The roles of the caller.' }),
  grants: Type.Array(
    Type.Object({
      roles: Type.Array(oneOf(ADMIN_ROLES)),
      labels: nullable(Texts('The labels to which the roles are limited; null: no limit.')),
    }),
    { description: 'What the caller may do at which labels.' },
  ),
  not_after: nullable(Timestamp('The expiry date of the token or the certificate; null: never.')),
  session: Type.Optional(
    described('The session of a caller who has signed in.', {
      created_at: Timestamp('The time of the sign-in.'),
      ends_at: Timestamp('The time at which the session ends.'),
      idle_timeout: Integer('Seconds without a call after which the session ends.'),
    }),
  ),
});

/** The `operation` of the audit record of a sign-out; event streams then check their session. */
export const SIGN_OUT = 'DELETE /admin/session';

/** Begins a session of the caller, and ends that of the cookie that came with the call. */
export function signIn(request: FastifyRequest, sessions: AdminDependencies['sessions']) {
  const admin = callerOf(request);
  return sessions.begin(admin, presentedCredentials(request.raw), sessionId(request.headers), [
    { type: 'auth.admin', outcome: 'success', ...actor(request), detail: `signed in: ${admin.method}` },
    accessEvent(request, 'success', 'signed in'),
  ]);
}

/** `/admin/session`: signing in and out, and the current administrator. */
export function registerSession(app: AdminApp, deps: AdminDependencies): void {
  const { sessions } = deps;
  const answer = (admin: AdminIdentity, session: AdminSession | null) => ({
    subject: admin.display,
    ...(admin.claims?.name === undefined ? {} : { name: admin.claims.name }),
    method: admin.method,
    roles: admin.roles,
    grants: admin.grants.map(({ roles, labels = null }) => ({ roles, labels })),
    not_after: formatOptionalTimestamp(admin.notAfter ?? null),
    ...(session === null
      ? {}
      : {
          session: {
            created_at: formatTimestamp(session.created_at),
            ends_at: formatTimestamp(session.ends_at),
            idle_timeout: sessions.times.idle_timeout,
          },
        }),
  });

  route(app, {
    call: 'GET /admin/session',
    access: 'everybody',
    labels: 'none',
    summary: 'Get the caller and its roles',
    tag: 'api',
    response: { 200: Session },
    handler: (request) => answer(callerOf(request), request.adminSession),
  });

  route(app, {
    call: 'POST /admin/session',
    access: 'everybody',
    labels: 'none',
    signsIn: true,
    summary: 'Sign in with a bearer token or a client certificate',
    description:
      'For browsers. The response sets a cookie that stands for the credential of the call until the caller signs out, ' +
      'the session is idle for `admin.sessions.idle_timeout`, or `admin.sessions.lifetime` has passed. The roles are those that the ' +
      'configuration gives at the time of each call. A session started with a client certificate needs a connection with that certificate. ' +
      'Each sign-in creates a new cookie, and ends the session of the cookie that came with the call.',
    tag: 'api',
    response: { 201: Session },
    handler: async (request, reply) => {
      const { id, session } = await signIn(request, sessions);
      return reply
        .code(201)
        .header('set-cookie', setSession(id))
        .send(answer(callerOf(request), session));
    },
  });

  route(app, {
    call: 'DELETE /admin/session',
    access: 'everybody',
    labels: 'none',
    summary: 'Sign out',
    description: 'Ends the session of the call. Its cookie becomes invalid.',
    tag: 'api',
    response: { 204: Type.Null({ description: 'Signed out.' }) },
    errors: [404],
    handler: async (request, reply) => {
      const session = request.adminSession;
      const hasEnded =
        session !== null && (await sessions.end(session, [accessEvent(request, 'success', 'signed out')]));
      if (!hasEnded) throw notFound('SESSION_NOT_FOUND', 'the call has no session');
      return reply.code(204).header('set-cookie', CLEAR_SESSION).send(null);
    },
  });
}
