import { Type } from '@fastify/type-provider-typebox';
import { describe, notFound, unavailable } from '../../errors.ts';
import { accessEvent } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { errorResponses, strictObject } from './schemas.ts';

export function registerNotifications(app: AdminApp, { store, notifiers }: AdminDependencies): void {
  app.post(
    '/admin/notifications/:name/test',
    {
      config: { access: ['operator'] },
      schema: {
        summary: 'Send a sample to a receiver of notifications',
        tags: ['notifications'],
        params: Type.Object({ name: Type.String() }),
        querystring: strictObject({}),
        response: {
          200: Type.Object(
            { name: Type.String(), delivered: Type.Literal(true) },
            { title: 'NotificationTest', description: 'The receiver accepted the sample.' },
          ),
          ...errorResponses(400, 404, 503),
        },
      },
    },
    async (request) => {
      const notifier = notifiers.find(({ name }) => name === request.params.name);
      if (notifier === undefined) throw notFound('NOTIFICATION_NOT_FOUND', 'there is no notification with this name');
      const { name } = notifier;
      await store.audit([accessEvent(request, 'success', `notification ${name}`)]);
      try {
        await notifier.test();
      } catch (error) {
        throw unavailable('NOTIFICATION_FAILED', `the receiver did not accept the sample: ${describe(error)}`, {
          retryAfter: 30,
        });
      }
      return { name, delivered: true as const };
    },
  );
}
