import { Type } from '@fastify/type-provider-typebox';
import { notFound } from '../../errors.ts';
import { accessEvent, actor } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { listRoute, route } from './route.ts';
import { oneOf, Text, Timestamp, titled } from './schemas.ts';
import { formatTimestamp } from '../../timestamp.ts';

const LockoutRecord = titled('Lockout', 'A lockout in force.', {
  key: Text('`address:192.0.2.7`, `username:device-1`, …'),
  scope: oneOf(['address', 'username', 'identification']),
  failures: Type.Integer(),
  locked_until: Timestamp(),
});

/** `GET /admin/lockouts` and `DELETE /admin/lockouts/{key}`. */
export function registerLockouts(app: AdminApp, deps: AdminDependencies): void {
  listRoute(app, deps, {
    call: 'GET /admin/lockouts',
    access: ['operator'],
    summary: 'List the lockouts',
    description: 'With `Accept: text/csv`, all of them as a table.',
    filters: {},
    item: LockoutRecord,
    sorted: 'The lockouts in force, the earliest end first.',
    page: (_request, now) => (page) => deps.store.listLockouts(page, now),
    record: ({ locked_until, ...lockout }) => ({ ...lockout, locked_until: formatTimestamp(locked_until) }),
  });

  route(app, {
    call: 'DELETE /admin/lockouts/:key',
    param: 'The key from the list, percent-encoded.',
    access: ['operator'],
    summary: 'End a lockout',
    response: { 204: Type.Null({ description: 'Ended.' }) },
    handler: async (request, reply) => {
      const { key } = request.params;
      const cleared = await deps.store.deleteLockout(key, [
        accessEvent(request, 'success', `lockout of ${key} ended`),
        { type: 'lockout.cleared', outcome: 'success', ...actor(request), detail: key },
      ]);
      if (!cleared) throw notFound('LOCKOUT_NOT_FOUND', 'no lockout has this key');
      return reply.code(204).send(null);
    },
  });
}
