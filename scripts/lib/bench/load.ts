/** The load generator: a process of its own, started by enroll.ts with a Job, that answers with a Result. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { enrollRequest, exchange, open, type Target } from './http.ts';

export interface Job {
  readonly port: number;
  /** PEM file of the server's CA. */
  readonly ca: string;
  readonly operation: 'simpleenroll' | 'simplereenroll';
  /** One connection in flight for each. */
  readonly clients: readonly JobClient[];
  readonly keepAlive: boolean;
  /** Seconds before the measuring starts. */
  readonly warmUp: number;
  /** Seconds of measuring. */
  readonly seconds: number;
}

export interface JobClient {
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
  /** Milliseconds of every enrolment that began and ended while measuring, in ascending order. */
  readonly latencies: readonly number[];
  /** What else came back: status or message → how often. */
  readonly failures: Readonly<Record<string, number>>;
}

export type LoadMessage = { readonly type: 'measuring' } | { readonly type: 'done'; readonly result: Result };

class Load {
  readonly #job: Job;
  readonly #latencies: number[] = [];
  readonly #failures = new Map<string, number>();
  #measuring = false;
  #stopped = false;

  constructor(job: Job) {
    this.#job = job;
  }

  async run(): Promise<Result> {
    const loops = this.#job.clients.map((client) => this.#loop(client));
    await sleep(this.#job.warmUp);
    this.#measuring = true;
    const start = performance.now();
    send({ type: 'measuring' });
    await sleep(this.#job.seconds);
    this.#measuring = false;
    const elapsed = (performance.now() - start) / 1000;
    this.#stopped = true;
    const latencies = this.#latencies.toSorted((a, b) => a - b);
    const result = { elapsed, latencies, failures: Object.fromEntries(this.#failures) };
    send({ type: 'done', result });
    await Promise.all(loops);
    return result;
  }

  async #loop(client: JobClient): Promise<void> {
    const target = { port: this.#job.port, context: secureContext(this.#job, client) };
    const request = enrollRequest(this.#job.operation, readFileSync(client.csr), client.authorization);
    const enroll = this.#job.keepAlive ? keptAlive(target, request) : () => onNewConnection(target, request);
    while (!this.#stopped) {
      const start = performance.now();
      const measured = this.#measuring;
      const outcome = await enroll().catch((error: unknown) =>
        error instanceof Error ? error.message : String(error),
      );
      if (!measured || !this.#measuring) continue;
      if (outcome === '200') this.#latencies.push(performance.now() - start);
      else this.#failures.set(outcome, (this.#failures.get(outcome) ?? 0) + 1);
    }
  }
}

async function onNewConnection(target: Target, request: Buffer): Promise<string> {
  const socket = await open(target);
  const { status } = await exchange(socket, request);
  socket.end();
  return String(status);
}

/** Keeps one connection, and opens another when the server has closed it. */
function keptAlive(target: Target, request: Buffer): () => Promise<string> {
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

function send(message: LoadMessage): void {
  process.send?.(message);
}

function isJob(value: unknown): value is Job {
  return typeof value === 'object' && value !== null && 'clients' in value && 'operation' in value;
}

const job: unknown = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
if (!isJob(job)) throw new Error('not a job');
await new Load(job).run();
process.exit(0);
