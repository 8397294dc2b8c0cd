/**
 * The replicas of one CA or KRA. The first one in use serves. A failed read moves to the next replica; a submission
 * does so only if it certainly did not arrive. A replica returns into use when the agent can log in again.
 */
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { SubmissionUnanswered, type HealthReport } from '../driver.ts';
import type { ClientTls, HttpAnswer, HttpCall } from '../remote/http.ts';
import { Replica, ReplicaFault, type SessionCall, type Subsystem } from './replica.ts';
import { caUnavailable } from '../remote/upstream.ts';

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
  readonly url: string;
  /** @throws ReplicaFault without a complete response */
  call(call: Omit<HttpCall, 'deadline' | 'connectDeadline'>): Promise<HttpAnswer>;
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
    await this.#check(this.#all);
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
      () => void this.#round(),
      recovering ? Math.min(RECOVERY_INTERVAL, checkInterval) : checkInterval,
    ).unref();
  }

  async #round(): Promise<void> {
    await this.#check(this.#all);
    this.#schedule();
  }

  async #check(replicas: readonly Replica[]): Promise<void> {
    await Promise.all(
      replicas.map(async (replica) => {
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
    url: replica.url,
    call: (call) => replica.call({ ...call, deadline, connectDeadline }),
    session: (work) => replica.session(deadline, work),
  };
}
