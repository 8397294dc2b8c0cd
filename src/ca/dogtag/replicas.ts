/**
 * The replicas of one CA or KRA. The first one in use serves. A failed read moves to the next replica; a submission
 * does so only if it certainly did not arrive. A replica returns into use when the agent can log in again.
 */
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { SubmissionUnanswered, type HealthReport } from '../driver.ts';
import { type ClientTls, type HttpAnswer, type HttpCall, HttpClient, TransportError } from '../../https-client.ts';
import { type SessionCall, ReplicaFault, complaint, NotHere, readJson } from './answers.ts';
import { caUnavailable } from '../remote/upstream.ts';
import { FairLimiter } from '../../process/fair-limiter.ts';
import { measured } from '../../dependency-calls.ts';

interface ReplicasOptions {
  readonly urls: readonly string[];
  readonly subsystem: Subsystem;
  readonly tls: ClientTls;
  /** Milliseconds for one operation, across all replicas. */
  readonly timeout: number;
  /** Milliseconds between checks of a replica in use. */
  readonly checkInterval: number;
  readonly retryAfter: number;
  readonly log: Pick<IsolatedLog, 'info' | 'warn'>;
}

export interface Attempt {
  /** @throws ReplicaFault without a complete response */
  readonly call: (call: Omit<HttpCall, 'deadline' | 'connectDeadline'>) => Promise<HttpAnswer>;
  session<T>(work: (call: SessionCall) => Promise<T>): Promise<T>;
}

/** Milliseconds between checks of a replica out of use. */
const RECOVERY_INTERVAL = 2000;

export class Replicas {
  readonly #all: readonly Replica[];
  readonly #options: ReplicasOptions;
  readonly #afterCheck: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param afterCheck further periodic work; never rejects */
  constructor(options: ReplicasOptions, afterCheck: () => Promise<void> = () => Promise.resolve()) {
    this.#options = options;
    this.#afterCheck = afterCheck;
    this.#all = options.urls.map((url) => new Replica(url, options.subsystem, options.tls));
  }

  /** Checks every replica now and periodically until {@link close}. */
  async start(): Promise<void> {
    await this.#check();
    this.#schedule();
  }

  /**
   * Runs `work` with one replica after another until one succeeds.
   * @throws EstuaryError 503 if none can; any other error of `work`
   */
  read<T>(work: (replica: Attempt) => Promise<T>): Promise<T> {
    return this.#try('read', work);
  }

  /**
   * As {@link read}, for work that must not run twice.
   * @throws EstuaryError 503 if it certainly arrived nowhere; SubmissionUnanswered
   */
  submit<T>(work: (replica: Attempt) => Promise<T>): Promise<T> {
    return this.#try('submit', work);
  }

  async #try<T>(kind: 'read' | 'submit', work: (replica: Attempt) => Promise<T>): Promise<T> {
    const end = Date.now() + this.#options.timeout;
    const candidates = this.#all.filter(({ problem }) => problem === undefined);
    const problems: string[] = [];
    for (const [index, replica] of candidates.entries()) {
      // A silent replica leaves time for the next ones. If it may have taken a submission, wait for it.
      const share = Date.now() + (end - Date.now()) / (candidates.length - index);
      try {
        const result = await work(attempt(replica, kind === 'read' ? share : end, share));
        replica.succeeded();
        return result;
      } catch (error) {
        if (!(error instanceof ReplicaFault)) throw error;
        this.#noteFault(replica, error);
        if (kind === 'submit' && error.mayHaveArrived) throw new SubmissionUnanswered(error);
        problems.push(`${replica.url}: ${error.message}`);
      }
    }
    throw caUnavailable(
      problems.length > 0 ? problems.join('; ') : this.#outOfUse().join('; '),
      this.#options.retryAfter,
    );
  }

  #noteFault(replica: Replica, fault: ReplicaFault): void {
    const before = replica.problem;
    replica.failed(fault);
    if (before === undefined && replica.problem !== undefined) {
      this.#options.log.warn({ replica: replica.url, detail: fault.message }, 'replica out of use');
      this.#schedule();
    }
  }

  #outOfUse(): string[] {
    return this.#all.flatMap(({ url, problem }) => (problem === undefined ? [] : `${url}: ${problem}`));
  }

  /** From cached state, without calls. */
  health(): HealthReport {
    const out = this.#outOfUse();
    if (out.length === 0) return { health: 'ok' };
    return { health: out.length === this.#all.length ? 'down' : 'degraded', detail: out.join('; ') };
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    const { checkInterval } = this.#options;
    const recovering = this.#outOfUse().length > 0;
    this.#timer = setTimeout(
      () => void this.start(),
      recovering ? Math.min(RECOVERY_INTERVAL, checkInterval) : checkInterval,
    ).unref();
  }

  async #check(): Promise<void> {
    await Promise.all(
      this.#all.map(async (replica) => {
        const before = replica.problem;
        await replica.check(Date.now() + this.#options.timeout);
        const { url, problem } = replica;
        if (before === undefined && problem !== undefined)
          this.#options.log.warn({ replica: url, detail: problem }, 'replica out of use');
        if (before !== undefined && problem === undefined)
          this.#options.log.info({ replica: url }, 'replica in use again');
      }),
    );
    await this.#afterCheck();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const replica of this.#all) replica.close();
  }
}

function attempt(replica: Replica, deadline: number, connectDeadline: number): Attempt {
  return {
    call: (call) => replica.call({ ...call, deadline, connectDeadline }),
    session: (work) => replica.session(deadline, work),
  };
}

/** A subsystem of a Dogtag server, with its own paths and sessions. */
type Subsystem = 'ca' | 'kra';

/** Consecutive faults that take a replica out of use; a failed connection does so at once. */
const FAULTS = 3;
/** Calls that may wait for the agent's session. */
const SESSION_QUEUE = 256;

/** One replica: its availability and the agent's session. */
export class Replica {
  readonly url: string;
  readonly #subsystem: Subsystem;
  readonly #client: HttpClient;
  readonly #session = new FairLimiter({
    concurrency: 1,
    queue: SESSION_QUEUE,
    busy: (detail) => new NotHere(`the agent's session is busy: ${detail}`),
  });
  #cookie: string | undefined;
  #faults = 0;
  #problem: string | undefined;

  constructor(url: string, subsystem: Subsystem, tls: ClientTls) {
    this.#client = new HttpClient(url, tls);
    this.#subsystem = subsystem;
    this.url = this.#client.url;
  }

  /** Why the replica is out of use; undefined while in use. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** @throws ReplicaFault without a complete response */
  async call(call: HttpCall): Promise<HttpAnswer> {
    try {
      return await measured({ dependency: 'dogtag' }, () =>
        this.#client.call({ ...call, headers: { Accept: 'application/json', ...call.headers } }),
      );
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      throw new ReplicaFault(error.message, error.mayHaveArrived, error);
    }
  }

  /**
   * Runs `work` exclusively in the agent's session: nonces are bound to it, and concurrent first calls would open two
   * sessions.
   * @throws ReplicaFault; NotHere if the session is not free before the deadline
   */
  session<T>(deadline: number, work: (call: SessionCall) => Promise<T>): Promise<T> {
    const waitMs = Math.max(0, deadline - Date.now());
    return this.#session.run(() => work((call) => this.#inSession({ ...call, deadline })), { waitMs });
  }

  async #inSession(call: HttpCall): Promise<HttpAnswer> {
    const headers = this.#cookie === undefined ? call.headers : { ...call.headers, Cookie: this.#cookie };
    const answer = await this.call({ ...call, ...(headers === undefined ? {} : { headers }) });
    this.#cookie = cookieOf(answer, this.#subsystem) ?? this.#cookie;
    if (answer.status === 401) this.#cookie = undefined;
    return answer;
  }

  /**
   * Logs in as the agent, which checks the web application, its directory and the account, and puts the replica into or
   * out of use.
   */
  async check(deadline: number): Promise<void> {
    try {
      const answer = await this.session(deadline, (call) =>
        call({ method: 'GET', path: `/${this.#subsystem}/rest/account/login` }),
      );
      if (answer.status === 200 && readJson(answer) !== undefined) this.succeeded();
      else this.#problem = `the agent cannot log in: ${complaint(answer)}`;
    } catch (error) {
      if (error instanceof NotHere) return;
      this.#problem = error instanceof Error ? error.message : String(error);
    }
  }

  succeeded(): void {
    this.#faults = 0;
    this.#problem = undefined;
  }

  /** Counts a fault; {@link check} puts the replica back into use. */
  failed(fault: ReplicaFault): void {
    if (fault instanceof NotHere) return;
    this.#faults += 1;
    if (this.#faults >= FAULTS || !fault.mayHaveArrived) this.#problem = fault.message;
  }

  close(): void {
    this.#client.close();
  }
}

/** The subsystem's session cookie; cookies are bound to a path. */
function cookieOf({ headers }: HttpAnswer, subsystem: Subsystem): string | undefined {
  for (const cookie of headers['set-cookie'] ?? []) {
    const [pair = '', ...attributes] = cookie.split(';').map((part) => part.trim());
    const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length);
    if (pair.startsWith('JSESSIONID=') && (path === undefined || path === `/${subsystem}`)) return pair;
  }
  return undefined;
}
