import { Type } from '@fastify/type-provider-typebox';
import { notFound } from '../../errors.ts';
import { accessEvent, actor } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { answerList, listAnswer, listQuery } from './list.ts';
import { errorResponses, formatTimestamp, oneOf, strictObject, Timestamp } from './schemas.ts';

const LockoutRecord = Type.Object(
  {
    key: Type.String({ description: '`address:192.0.2.7`, `username:device-1`, …' }),
    scope: oneOf(['address', 'username', 'identification']),
    failures: Type.Integer(),
    locked_until: Timestamp(),
  },
  { title: 'Lockout', description: 'A lockout in force.' },
);

/** `GET /admin/lockouts` and `DELETE /admin/lockouts/{key}`. */
export function registerLockouts(app: AdminApp, deps: AdminDependencies): void {
  app.get(
    '/admin/lockouts',
    {
      config: { access: ['operator'] },
      schema: {
        summary: 'List the lockouts',
        tags: ['lockouts'],
        description: 'With `Accept: text/csv`, all of them as a table.',
        querystring: strictObject(listQuery),
        response: {
          200: listAnswer(LockoutRecord, 'The lockouts in force, the earliest end first.'),
          ...errorResponses(400),
        },
      },
    },
    (request, reply) => {
      const now = deps.now();
      return answerList(request, reply, request.query, {
        page: (page) => deps.store.listLockouts(page, now),
        record: ({ key, scope, failures, locked_until }) => ({
          key,
          scope,
          failures,
          locked_until: formatTimestamp(locked_until),
        }),
        header: Object.keys(LockoutRecord.properties),
      });
    },
  );

  app.delete(
    '/admin/lockouts/:key',
    {
      config: { access: ['operator'] },
      schema: {
        summary: 'End a lockout',
        tags: ['lockouts'],
        params: Type.Object({ key: Type.String({ description: 'The key from the list, percent-encoded.' }) }),
        response: { 204: Type.Null({ description: 'Ended.' }), ...errorResponses(400, 404) },
      },
    },
    async (request, reply) => {
      const { key } = request.params;
      const cleared = await deps.store.deleteLockout(key, [
        accessEvent(request, 'success', `lockout of ${key} ended`),
        { type: 'lockout.cleared', outcome: 'success', ...actor(request), detail: key },
      ]);
      if (!cleared) throw notFound('LOCKOUT_NOT_FOUND', 'no lockout has this key');
      return reply.code(204).send(null);
    },
  );
}
