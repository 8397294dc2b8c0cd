import { Type } from '@fastify/type-provider-typebox';
import type { AdminSession } from '../../auth/admin-sessions.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { ADMIN_ROLES } from '../../config/vocabulary.ts';
import { notFound } from '../../errors.ts';
import { presentedCredentials } from '../credentials.ts';
import { accessEvent, actor, callerOf } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import {
  errorResponses,
  formatOptionalTimestamp,
  formatTimestamp,
  nullable,
  oneOf,
  strictObject,
  Timestamp,
} from './schemas.ts';
import { CLEAR_SESSION, sessionId, setSession } from './caller.ts';

const Session = Type.Object(
  {
    subject: Type.String({
      description:
        "The administrator's name: as configured, else the token's description or the certificate's subject. The audit log shows it.",
    }),
    method: oneOf(['bearer', 'mtls'], { description: 'What it has proved, or had when it signed in.' }),
    roles: Type.Array(oneOf(ADMIN_ROLES), { description: 'What the caller may do.' }),
    grants: Type.Array(
      Type.Object({
        roles: Type.Array(oneOf(ADMIN_ROLES)),
        labels: nullable(
          Type.Array(Type.String(), { description: 'The labels to which the roles are limited; null: no limit.' }),
        ),
      }),
      { description: 'What the caller may do at which labels.' },
    ),
    not_after: nullable(Timestamp('When the token or the certificate ends; null: never.')),
    session: Type.Optional(
      Type.Object(
        {
          created_at: Timestamp('When it was signed in.'),
          ends_at: Timestamp('When it has to sign in again.'),
          idle_timeout: Type.Integer({ description: 'Seconds without a call after which it has to as well.' }),
        },
        { description: 'Of a caller who has signed in.' },
      ),
    ),
  },
  { title: 'Session', description: 'The caller.' },
);

/** The `operation` of the audit record of a sign-out; event streams then check their session. */
export const SIGN_OUT = 'DELETE /admin/session';

/** `/admin/session`: signing in and out, and the current administrator. */
export function registerSession(app: AdminApp, deps: AdminDependencies): void {
  const { sessions } = deps;
  const answer = (admin: AdminIdentity, session: AdminSession | null) => ({
    subject: admin.display,
    method: admin.method,
    roles: [...admin.roles],
    grants: admin.grants.map(({ roles, labels }) => ({
      roles: [...roles],
      labels: labels === undefined ? null : [...labels],
    })),
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

  app.get(
    '/admin/session',
    {
      config: { access: 'everybody', labels: 'none' },
      schema: {
        summary: 'Who is calling, and what the caller may do',
        tags: ['api'],
        querystring: strictObject({}),
        response: { 200: Session, ...errorResponses(400) },
      },
    },
    (request) => answer(callerOf(request), request.adminSession),
  );

  app.post(
    '/admin/session',
    {
      config: { access: 'everybody', labels: 'none', signsIn: true },
      schema: {
        summary: 'Sign in with a bearer token or a client certificate',
        description:
          'For browsers. The answer sets a cookie that stands for what the call was authenticated with, until it is signed out, ' +
          'was not used for `admin.sessions.idle_timeout`, or `admin.sessions.lifetime` has passed. What the caller may do is what the ' +
          'configuration says at each call. A session that was begun on a connection with a client certificate is good on such ones only. ' +
          'Each signing in has a cookie of its own; the session of a cookie that came with the call ends.',
        tags: ['api'],
        querystring: strictObject({}),
        response: { 201: Session, ...errorResponses(400) },
      },
    },
    async (request, reply) => {
      const admin = callerOf(request);
      const { id, session } = await sessions.begin(
        admin,
        presentedCredentials(request.raw),
        sessionId(request.headers),
        [
          { type: 'auth.admin', outcome: 'success', ...actor(request), detail: `signed in: ${admin.method}` },
          accessEvent(request, 'success', 'signed in'),
        ],
      );
      return reply.code(201).header('set-cookie', setSession(id)).send(answer(admin, session));
    },
  );

  app.delete(
    '/admin/session',
    {
      config: { access: 'everybody', labels: 'none' },
      schema: {
        summary: 'Sign out',
        description: 'Ends the session that the call came with; its cookie is worth nothing from then on.',
        tags: ['api'],
        querystring: strictObject({}),
        response: { 204: Type.Null({ description: 'Signed out.' }), ...errorResponses(400, 404) },
      },
    },
    async (request, reply) => {
      const session = request.adminSession;
      const hasEnded =
        session !== null && (await sessions.end(session, [accessEvent(request, 'success', 'signed out')]));
      if (!hasEnded) throw notFound('SESSION_NOT_FOUND', 'the call does not come with a session');
      return reply.code(204).header('set-cookie', CLEAR_SESSION).send(null);
    },
  );
}
