/**
 * The load generator: a process that receives a {@link Job} as its first message. With a rate, it returns a {@link Result}.
 * Otherwise it sends `ready` after the warm-up, and returns a result for each number of seconds that it receives.
 */
import { once } from 'node:events';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { makeKey, onTheWire, simpleCsr } from '../../../test/support/csr.ts';
import { cpuSeconds } from './measure.ts';

export interface Client {
  /** The common name of its certificates, and the first label of their dNSName. */
  readonly name: string;
  /** PEM, for mTLS. */
  readonly cert?: string;
  readonly key?: string;
  /** The value of the Authorization header, for a one-time password. */
  readonly authorization?: string;
}

export interface Job {
  readonly port: number;
  /** The process whose CPU time is measured. */
  readonly pid: number;
  /** PEM of the server's CA. */
  readonly ca: string;
  /** Each has one connection, and one request at a time. */
  readonly clients: readonly Client[];
  /** A connection for each enrollment, or one for all enrollments of a client. */
  readonly connection: 'new' | 'kept';
  readonly operation: 'simpleenroll' | 'simplereenroll';
  /** Enrollments that are not measured: code that V8 has not compiled yet is several times slower. */
  readonly warmUp: number;
  /** Requests per second for some seconds, sent whatever comes back. Absent: each client waits for its response. */
  readonly fixed?: { readonly rate: number; readonly seconds: number };
}

export interface Result {
  readonly elapsed: number;
  /** CPU seconds of the server. */
  readonly cpu: number;
  /** Milliseconds of each response by its status or error, in ascending order. */
  readonly answers: Readonly<Record<string, readonly number[]>>;
  /** Requests that were due while no connection was free. */
  readonly unsent: number;
}

/** Milliseconds between two checks of how many requests are due. */
const TICK = 5;
/** Connections that are opened at the same time. */
const OPENED_AT_ONCE = 8;

interface Lane {
  readonly context: SecureContext;
  /** A request for a new key. */
  readonly request: () => Buffer;
  socket?: TLSSocket;
}

function laneOf({ name, cert, key, authorization }: Client, { ca, operation }: Job): Lane {
  const head = [
    `POST /.well-known/est/${operation} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/pkcs10',
    ...(authorization === undefined ? [] : [`Authorization: ${authorization}`]),
  ].join('\r\n');
  return {
    context: createSecureContext({ ca, cert, key }),
    request: () => {
      const csr = onTheWire(simpleCsr(makeKey(), name, [`${name}.example.com`]));
      return Buffer.from(`${head}\r\nContent-Length: ${csr.length}\r\n\r\n${csr}`, 'latin1');
    },
  };
}

async function open(lane: Lane, port: number): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', servername: 'localhost', port, secureContext: lane.context });
  socket.setNoDelay(true);
  await once(socket, 'secureConnect');
  return socket;
}

/** Sends a request and reads the response. @returns its status */
function exchange(socket: TLSSocket, request: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/^content-length: *(\d+)$/im.exec(text.slice(0, end))?.[1] ?? 0);
      if (text.length < end + 4 + length) return;
      done();
      resolve(text.slice(9, 12));
    };
    const onEnd = (): void => {
      done();
      reject(new Error('the connection ended before the response'));
    };
    const done = (): void => {
      socket.off('data', onData).off('close', onEnd).off('error', onEnd);
    };
    socket.on('data', onData).on('close', onEnd).on('error', onEnd);
    socket.write(request);
  });
}

async function enroll(lane: Lane, { port, connection }: Job): Promise<string> {
  const kept = lane.socket !== undefined && !lane.socket.closed && !lane.socket.readableEnded ? lane.socket : undefined;
  const socket = kept ?? (await open(lane, port));
  if (connection === 'kept') lane.socket = socket;
  const status = await exchange(socket, lane.request());
  if (connection === 'new') socket.end();
  return status;
}

/** Responses and their times. */
class Answers {
  readonly #times = new Map<string, number[]>();
  /** Requests that were sent. */
  count = 0;

  async add(enrollment: Promise<string>): Promise<void> {
    const start = performance.now();
    this.count++;
    const outcome = await enrollment.catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
    const times = this.#times.get(outcome);
    if (times === undefined) this.#times.set(outcome, [performance.now() - start]);
    else times.push(performance.now() - start);
  }

  sorted(): Result['answers'] {
    return Object.fromEntries([...this.#times].map(([what, times]) => [what, times.toSorted((a, b) => a - b)]));
  }
}

const microseconds = (): number => Number(process.hrtime.bigint() / 1000n);
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Each client sends its next request after the response to the one before, until a condition on the responses holds. */
async function inTurn(job: Job, lanes: readonly Lane[], isEnough: (answers: Answers) => boolean): Promise<Result> {
  const answers = new Answers();
  const [from, cpu] = [microseconds(), cpuSeconds(job.pid)];
  const loops = lanes.map(async (lane) => {
    while (!isEnough(answers)) await answers.add(enroll(lane, job));
  });
  await Promise.all(loops);
  const elapsed = (microseconds() - from) / 1e6;
  return { elapsed, cpu: cpuSeconds(job.pid) - cpu, answers: answers.sorted(), unsent: 0 };
}

/** Requests at a fixed rate over the connections that are free. */
async function atRate(job: Job, lanes: readonly Lane[], rate: number, seconds: number): Promise<Result> {
  const free: Lane[] = [];
  const waiting = [...lanes];
  const opener = async (): Promise<void> => {
    for (let lane = waiting.pop(); lane !== undefined; lane = waiting.pop()) {
      // The server closes a connection that sends no request.
      await enroll(lane, job);
      free.push(lane);
    }
  };
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, opener));
  process.send?.('ready');
  const answers = new Answers();
  const underWay = new Set<Promise<void>>();
  let [sent, unsent] = [0, 0];
  const [from, cpu] = [microseconds(), cpuSeconds(job.pid)];
  const elapsed = (): number => (microseconds() - from) / 1e6;
  while (elapsed() < seconds) {
    for (const due = Math.floor(elapsed() * rate); sent + unsent < due;) {
      const lane = free.shift();
      if (lane === undefined) {
        unsent++;
        continue;
      }
      sent++;
      const one = answers.add(enroll(lane, job)).then(() => {
        free.push(lane);
        underWay.delete(one);
      });
      underWay.add(one);
    }
    await sleep(TICK);
  }
  await Promise.all(underWay);
  const to = microseconds();
  const used = cpuSeconds(job.pid) - cpu;
  return { elapsed: (to - from) / 1e6, cpu: used, answers: answers.sorted(), unsent };
}

async function run(job: Job): Promise<void> {
  const lanes = job.clients.map((client) => laneOf(client, job));
  process.once('disconnect', () => process.exit(0));
  if (job.fixed !== undefined) {
    process.send?.(await atRate(job, lanes, job.fixed.rate, job.fixed.seconds));
    return;
  }
  if (job.warmUp > 0) await inTurn(job, lanes, ({ count }) => count >= job.warmUp);
  process.on('message', (seconds: number) => {
    const end = performance.now() + seconds * 1000;
    void inTurn(job, lanes, () => performance.now() >= end).then((result) => process.send?.(result));
  });
  process.send?.('ready');
}

process.once('message', (job: Job) => void run(job));
