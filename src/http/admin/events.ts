/** `GET /admin/events`: audit records as server-sent events. */
import { Readable } from 'node:stream';
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { unavailable } from '../../errors.ts';
import { shownAuditItem } from './audit.ts';
import { callerOf } from './access.ts';
import { identify } from './caller.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { eventStream } from './event-stream.ts';
import type { Access } from './roles.ts';
import { route } from './route.ts';
import { strictObject } from './schemas.ts';
import { SIGN_OUT } from './session.ts';

/** Streams per process. */
const MAX_STREAMS = 100;
/** Maximum missed records that a client gets when it reconnects. */
const MAX_MISSED = 1000;

const access: Access = ['ra', 'auditor', 'operator'];

export function registerEvents(app: AdminApp, deps: AdminDependencies): void {
  const streams = new Set<Readable>();
  app.addHook('preClose', (done) => {
    for (const stream of streams) stream.destroy();
    done();
  });
  route(app, {
    call: 'GET /admin/events',
    exposeHeadRoute: false,
    access,
    labels: 'records',
    summary: 'Stream the audit records',
    description:
      'Server-sent events of the type `audit`, one for each audit record of any node; the id is its `seq`. `admin` and `auditor` get whole ' +
      'records. `ra` gets records about certificates, requests, tokens, devices, and the authentication of requesters. `operator` gets records about the service. Both get them without `detail`, addresses and hashes. ' +
      `\`Last-Event-ID\` continues after a record, unless more than ${MAX_MISSED} records were missed. An event \`alive\` without data comes every 15 seconds. The stream ends with the session, ` +
      'the token or the role with which it was opened.',
    tag: 'statistics',
    response: {
      200: {
        description: 'Continues until one side ends it.',
        content: { 'text/event-stream': { schema: Type.String() } },
      },
    },
    handler: async (request, reply) => {
      if (streams.size >= MAX_STREAMS)
        throw unavailable('TOO_MANY_STREAMS', 'too many event streams are open', { retryAfter: 30 });
      let admin = callerOf(request);
      const stream = eventStream({
        read: (after, limit) => deps.store.auditLines(after, limit),
        after: await startOf(request, deps),
        show: (record) => shownAuditItem(record, admin),
        mayGoOn: async () => {
          ({ admin } = await identify(request, deps));
          return admin.roles.length > 0;
        },
        mayEnd: ({ type, operation }) => type === 'admin.access' && operation === SIGN_OUT,
        ...deps.eventTimes,
      });
      streams.add(stream);
      stream.once('close', () => streams.delete(stream));
      return sendEvents(reply, stream);
    },
  });
  app.head(
    '/admin/events',
    { config: { access, labels: 'records' }, schema: { hide: true, querystring: strictObject({}) } },
    (_, reply) => sendEvents(reply, Readable.from([])),
  );
}

/** Tells proxies not to buffer the endless response. */
const sendEvents = (reply: FastifyReply, stream: Readable): FastifyReply =>
  reply.type('text/event-stream').header('x-accel-buffering', 'no').send(stream);

/** The stream starts after this record: the last one that the client has seen, or the latest. */
async function startOf({ headers }: FastifyRequest, { store }: AdminDependencies): Promise<number> {
  const [newest] = (await store.listAudit({ limit: 1, order: 'desc' })).items;
  const end = newest?.seq ?? 0;
  const seen = headers['last-event-id'];
  const last = typeof seen === 'string' && /^\d{1,15}$/.test(seen) ? Number(seen) : end;
  return last <= end && end - last <= MAX_MISSED ? last : end;
}
