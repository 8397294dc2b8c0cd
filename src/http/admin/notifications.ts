/** `/admin/notifications…`: the receivers of notifications, and how the delivery to them is. */
import { Type } from '@fastify/type-provider-typebox';
import { describe, notFound, unavailable } from '../../errors.ts';
import { accessEvent } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { NOTIFICATION_EVENTS } from '../../config/vocabulary.ts';
import type { NotifierState } from '../../notification/notifier.ts';
import { listQuery, pageOf, route } from './route.ts';
import { Integer, listOf, nullable, oneOf, Text, Texts, Timestamp, titled } from './schemas.ts';
import { formatOptionalTimestamp } from '../../timestamp.ts';

const Receiver = titled('NotificationReceiver', 'A receiver of notifications.', {
  name: Type.String(),
  kind: oneOf(['webhook', 'smtp']),
  destination: Text('The server of a webhook, or the recipients of mail.'),
  events: nullable(Type.Array(oneOf(NOTIFICATION_EVENTS), { description: 'null: all that the kind sends.' })),
  labels: nullable(Texts('null: all.')),
  state: oneOf(['ok', 'failing', 'standby'], {
    description: '`standby`: another node delivers, and knows of its attempts.',
  }),
  failures: Integer('Failed attempts in succession.'),
  problem: nullable(Text('Why the last attempt failed.')),
  delivered_at: nullable(Timestamp('The last delivery since the start of this node.')),
  behind: Integer('Audit records after the last one that is done.'),
});

export function registerNotifications(app: AdminApp, { store, notifiers }: AdminDependencies): void {
  route(app, {
    call: 'GET /admin/notifications',
    access: ['operator'],
    summary: 'List the receivers of notifications, and how the delivery to them is',
    query: listQuery,
    response: { 200: listOf(Receiver, 'In the order of the configuration.') },
    handler: async (request) => {
      const { items, ...rest } = pageOf(notifiers, request.query);
      return { items: (await Promise.all(items.map((receiver) => receiver.state()))).map(receiverRecord), ...rest };
    },
  });

  route(app, {
    call: 'POST /admin/notifications/:name/test',
    access: ['operator'],
    summary: 'Send a sample to a receiver of notifications',
    response: {
      200: titled('NotificationTest', 'The receiver accepted the sample.', {
        name: Type.String(),
        delivered: Type.Literal(true),
      }),
    },
    errors: [503],
    handler: async (request) => {
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
  });
}

function receiverRecord({ config, delivers, ...state }: NotifierState) {
  const { name, kind, events = null, labels = null } = config;
  return {
    ...{ ...state, name, kind, events, labels },
    // The path of a webhook may be its secret.
    destination: config.kind === 'webhook' ? new URL(config.url).origin : config.to.join(', '),
    state: !delivers ? 'standby' : state.failures === 0 ? 'ok' : 'failing',
    problem: state.problem ?? null,
    delivered_at: formatOptionalTimestamp(state.delivered_at ?? null),
  };
}
