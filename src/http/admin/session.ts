import { Type } from '@fastify/type-provider-typebox';
import { ADMIN_ROLES } from '../../config/admin-roles.ts';
import { failed } from '../../errors.ts';
import type { AdminApp } from './dependencies.ts';
import { errorResponses, nullable, oneOf, strictObject, Timestamp } from './schemas.ts';
import { formatOptionalTimestamp } from './timestamps.ts';

const Session = Type.Object(
  {
    subject: Type.String({
      description: "The token's description, or the certificate's subject; what the audit log calls the caller.",
    }),
    method: oneOf(['bearer', 'mtls']),
    roles: Type.Array(oneOf(ADMIN_ROLES), { description: 'What the caller may do.' }),
    not_after: nullable(Timestamp('When the token or the certificate ends; null: never.')),
  },
  { description: 'The caller.' },
);

/** `GET /admin/session`: who am I. */
export function registerSession(app: AdminApp): void {
  app.get(
    '/admin/session',
    {
      config: { access: 'everybody' },
      schema: {
        summary: 'Who is calling, and what the caller may do',
        tags: ['api'],
        querystring: strictObject({}),
        response: { 200: Session, ...errorResponses(400) },
      },
    },
    ({ admin }) => {
      if (admin === null) throw failed('INTERNAL_ERROR', 'the request failed inside the server');
      const { display: subject, method, roles, notAfter } = admin;
      return { subject, method, roles: [...roles], not_after: formatOptionalTimestamp(notAfter ?? null) };
    },
  );
}
