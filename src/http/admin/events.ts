/** `GET /admin/events`: audit records as server-sent events. */
import { Readable } from 'node:stream';
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { unavailable } from '../../errors.ts';
import { shownAuditItem } from './audit.ts';
import { type Access, callerOf } from './access.ts';
import { identify } from './caller.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { route } from './route.ts';
import { strictObject } from './schemas.ts';
import { SIGN_OUT } from './session.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import type { AuditLine } from '../../store/audit-store.ts';

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
      // A response without end has no reader then.
      request.raw.socket.once('end', () => stream.destroy());
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

/** Milliseconds between polls of the store, to which other nodes write too. */
const LOOK_EVERY = 1000;
/** Milliseconds between heartbeats, and between checks of the caller's permission. */
const BEAT_EVERY = 15_000;
/** Milliseconds after which a caller that reads nothing is disconnected. */
const MAX_WAIT = 60_000;
/** Records per read. */
const BATCH = 200;

interface EventStreamOptions {
  /** The records after one, in order. */
  readonly read: (after: number, limit: number) => Promise<readonly AuditLine[]>;
  /** The stream starts after this record. */
  readonly after: number;
  /** The visible part of a record; undefined: none. */
  readonly show: (record: AuditRecord) => object | undefined;
  /** Rejects or returns false once the caller loses permission. */
  readonly mayGoOn: () => Promise<boolean>;
  /** Records after which permission is checked at once. */
  readonly mayEnd: (record: AuditRecord) => boolean;
  /** Milliseconds, for tests. */
  readonly lookEvery?: number;
  readonly beatEvery?: number;
}

/**
 * Server-sent events (HTML §9.2), one per record. Buffers at most one batch of records; reads the next when the caller
 * has read the last. Ends when the caller loses permission, when the store fails, or when nobody reads.
 */
export function eventStream({
  lookEvery = LOOK_EVERY,
  beatEvery = BEAT_EVERY,
  ...options
}: EventStreamOptions): Readable {
  const over = new AbortController();
  let taken = performance.now();
  const stream = Readable.from(texts(), { objectMode: false });
  const beat = setInterval(() => {
    if (performance.now() - taken > MAX_WAIT) return void stream.destroy();
    // Buffered data is still sent; an entitled client reconnects.
    void askAgain();
  }, beatEvery);
  stream.once('close', () => {
    clearInterval(beat);
    over.abort();
  });
  return stream;

  async function askAgain(): Promise<void> {
    if (!(await options.mayGoOn().catch(() => false))) over.abort();
  }

  async function* texts(): AsyncGenerator<string> {
    let last = options.after;
    let beaten = performance.now();
    yield `retry: 3000\nid: ${last}\n\n`;
    while (!over.signal.aborted) {
      taken = performance.now();
      const lines = await options.read(last, BATCH);
      last = lines.at(-1)?.seq ?? last;
      const records = lines.map(({ seq, line }) => ({ seq, record: recordOf(line) }));
      if (records.some(({ record }) => record !== undefined && options.mayEnd(record))) {
        await askAgain();
        if (isAborted(over.signal)) return;
      }
      const text = records.map(({ seq, record }) => eventOf(seq, record && options.show(record))).join('');
      if (text !== '') yield text;
      else if (taken - beaten >= beatEvery) {
        beaten = taken;
        // With the position, so that a client that reconnects skips records that it may not see. An event without data,
        // because scripts in a browser do not see comments.
        yield `: alive\nevent: alive\ndata\nid: ${last}\n\n`;
      }
      if (lines.length < BATCH) await sleep(lookEvery, undefined, { signal: over.signal }).catch(() => undefined);
    }
  }
}

const isAborted = (signal: AbortSignal): boolean => signal.aborted;

function recordOf(line: string): AuditRecord | undefined {
  const record: unknown = JSON.parse(line);
  return isAuditRecord(record) ? record : undefined;
}

/** JSON contains no line end. */
const eventOf = (seq: number, shown: object | undefined): string =>
  shown === undefined ? '' : `event: audit\nid: ${seq}\ndata: ${JSON.stringify(shown)}\n\n`;
