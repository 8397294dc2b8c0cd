/** The load generator: a process of its own, started by measure.ts with a Job, that answers with a Result. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { CACERTS_REQUEST, enrollRequest, exchange, open, type Target } from './http.ts';

export interface Job {
  readonly port: number;
  /** PEM file of the server's CA. */
  readonly ca: string;
  /** One connection in flight for each. */
  readonly clients: readonly JobClient[];
  /**
   * Enrollments that arrive in a second, at random; each waits for a client that is free, and its latency counts from its arrival. Absent: each
   * client sends its next when the last is answered.
   */
  readonly perSecond?: number | undefined;
  /** Seconds before the measuring starts, at least. */
  readonly warmUp: number;
  /** Enrollments before the measuring starts, unless {@link PATIENCE} is over: what V8 has not compiled yet is several times as slow. */
  readonly warmUpCount: number;
  /** Seconds of measuring. */
  readonly seconds: number;
}

/** A new one for each enrollment, in full or resumed from the one before; or one for all. */
export type ConnectionKind = 'new' | 'resumed' | 'kept';

export interface JobClient {
  readonly operation: 'simpleenroll' | 'simplereenroll' | 'cacerts';
  readonly connection: ConnectionKind;
  /** DER file. */
  readonly csr: string;
  /** PEM files, for mTLS. */
  readonly certificate?: string;
  readonly key?: string;
  /** The value of the Authorization header, for an OTP. */
  readonly authorization?: string;
}

export interface Result {
  /** Seconds that the measuring took. */
  readonly elapsed: number;
  /** Milliseconds of every enrollment that ended while measuring, in ascending order. */
  readonly latencies: readonly number[];
  /** What else came back: status or message → how often. */
  readonly failures: Readonly<Record<string, number>>;
}

/** `measured` comes at once, so that its reader sees the CPU time of then; the result is larger. */
export type LoadMessage =
  { readonly type: 'measuring' | 'measured' } | { readonly type: 'done'; readonly result: Result };

/** Seconds between two looks whether the server is warm. */
const LOOK = 0.25;
/** Seconds that the warming up takes at most. */
const PATIENCE = 60;

class Load {
  readonly #job: Job;
  readonly #latencies: number[] = [];
  readonly #failures = new Map<string, number>();
  #measuring = false;
  #stopped = false;
  #done = 0;

  constructor(job: Job) {
    this.#job = job;
  }

  async run(): Promise<void> {
    const { clients, perSecond } = this.#job;
    const ways = clients.map((client) => this.#wayOf(client));
    const loops =
      perSecond === undefined ? ways.map((enroll) => this.#loop(enroll)) : [this.#arrivals(ways, perSecond)];
    await this.#warmUp();
    const start = performance.now();
    this.#measuring = true;
    await send({ type: 'measuring' });
    await sleep(this.#job.seconds);
    this.#measuring = false;
    const elapsed = (performance.now() - start) / 1000;
    await send({ type: 'measured' });
    this.#stopped = true;
    const latencies = this.#latencies.toSorted((a, b) => a - b);
    const result = { elapsed, latencies, failures: Object.fromEntries(this.#failures) };
    await Promise.all(loops);
    await send({ type: 'done', result });
  }

  async #warmUp(): Promise<void> {
    const { warmUp, warmUpCount } = this.#job;
    for (let waited = 0; waited < PATIENCE && (waited < warmUp || this.#done < warmUpCount); waited += LOOK)
      await sleep(LOOK);
  }

  #wayOf(client: JobClient): Enroll {
    const target = { port: this.#job.port, context: secureContext(this.#job, client) };
    const request =
      client.operation === 'cacerts'
        ? CACERTS_REQUEST
        : enrollRequest(client.operation, readFileSync(client.csr), client.authorization);
    return WAYS[client.connection](target, request);
  }

  async #loop(enroll: Enroll): Promise<void> {
    while (!this.#stopped) await this.#enroll(enroll, performance.now());
  }

  async #arrivals(ways: readonly Enroll[], perSecond: number): Promise<void> {
    const free = [...ways];
    const arrived: number[] = [];
    const busy = new Set<Promise<void>>();
    const serve = (): void => {
      for (let [way, start] = [free[0], arrived[0]]; way !== undefined && start !== undefined && !this.#stopped;) {
        free.shift();
        arrived.shift();
        const enroll = way;
        const done = this.#enroll(enroll, start).then(() => {
          busy.delete(done);
          free.push(enroll);
          serve();
        });
        busy.add(done);
        [way, start] = [free[0], arrived[0]];
      }
    };
    for (let due = performance.now(); !this.#stopped; due -= (Math.log(1 - Math.random()) * 1000) / perSecond) {
      await sleep(Math.max(0, due - performance.now()) / 1000);
      arrived.push(due);
      serve();
    }
    await Promise.all(busy);
  }

  /** @param start milliseconds, from when its latency counts */
  async #enroll(enroll: Enroll, start: number): Promise<void> {
    const outcome = await enroll().catch((error: unknown) => (error instanceof Error ? error.message : String(error)));
    this.#done++;
    if (!this.#measuring) return;
    if (outcome === '200') this.#latencies.push(performance.now() - start);
    else this.#failures.set(outcome, (this.#failures.get(outcome) ?? 0) + 1);
  }
}

type Enroll = () => Promise<string>;

const WAYS: Readonly<Record<ConnectionKind, (target: Target, request: Buffer) => Enroll>> = {
  new: (target, request) => async () => onConnection(await open(target), request),
  resumed,
  kept: keptAlive,
};

async function onConnection(socket: Awaited<ReturnType<typeof open>>, request: Buffer): Promise<string> {
  const { status } = await exchange(socket, request);
  socket.end();
  return String(status);
}

/** Each connection takes up the session of the one before. A handshake in full, after the first, is a failure. */
function resumed(target: Target, request: Buffer): Enroll {
  let session: Buffer | undefined;
  return async () => {
    const wanted = session !== undefined;
    const socket = await open({ ...target, session });
    socket.on('session', (ticket: Buffer) => (session = ticket));
    const status = await onConnection(socket, request);
    return wanted && !socket.isSessionReused() ? 'not resumed' : status;
  };
}

/** Keeps one connection, and opens another when the server has closed it. */
function keptAlive(target: Target, request: Buffer): Enroll {
  let socket: Awaited<ReturnType<typeof open>> | undefined;
  return async () => {
    if (socket === undefined || socket.closed || socket.readableEnded) socket = await open(target);
    return String((await exchange(socket, request)).status);
  };
}

function secureContext(job: Job, client: JobClient): ReturnType<typeof createSecureContext> {
  const own =
    client.certificate === undefined || client.key === undefined
      ? {}
      : { cert: readFileSync(client.certificate), key: readFileSync(client.key) };
  return createSecureContext({ ca: readFileSync(job.ca), ...own });
}

const sleep = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Resolves when it is on its way: many latencies are more than a pipe takes at once. */
function send(message: LoadMessage): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

function isJob(value: unknown): value is Job {
  return typeof value === 'object' && value !== null && 'clients' in value && 'warmUpCount' in value;
}

const job: unknown = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
if (!isJob(job)) throw new Error('not a job');
await new Load(job).run();
process.exit(0);
