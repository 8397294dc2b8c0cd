/** Takes an upstream out of use after repeated failures, until a probe succeeds. */
import { describe } from '../../errors.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import type { HealthReport } from '../driver.ts';

/** Consecutive failures that open the breaker. */
const FAILURES = 3;
/** Milliseconds between probes while the breaker is open, doubled up to the maximum. */
const [SHORTEST, LONGEST] = [2000, 30_000];

interface BreakerOptions {
  readonly probe: () => Promise<void>;
  readonly log: Pick<IsolatedLog, 'info' | 'warn'>;
}

export class Breaker {
  readonly #options: BreakerOptions;
  #failures = 0;
  #problem: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #wait = SHORTEST;
  #closed = false;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  /** Why the upstream is out of use; undefined while in use. */
  get problem(): string | undefined {
    return this.#problem;
  }

  health(): HealthReport {
    if (this.#problem !== undefined) return { health: 'down', detail: this.#problem };
    return { health: 'ok' };
  }

  succeeded(): void {
    this.#failures = 0;
    this.#wait = SHORTEST;
    this.#use();
  }

  #use(): void {
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    clearTimeout(this.#timer);
    this.#options.log.info({}, 'upstream CA in use again');
  }

  failed(error: unknown): void {
    this.#failures += 1;
    if (this.#failures < FAILURES || this.#problem !== undefined) return;
    this.open(describe(error));
  }

  /** Takes the upstream out of use at once. */
  open(problem: string): void {
    if (this.#problem === undefined) this.#options.log.warn({ detail: problem }, 'upstream CA out of use');
    this.#problem = problem;
    this.#schedule();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#probe(), this.#wait).unref();
    this.#wait = Math.min(LONGEST, this.#wait * 2);
  }

  async #probe(): Promise<void> {
    try {
      await this.#options.probe();
      // The next call must succeed: a probe cannot see everything.
      this.#failures = FAILURES - 1;
      this.#use();
    } catch (error) {
      this.#problem = describe(error);
      this.#schedule();
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }
}
