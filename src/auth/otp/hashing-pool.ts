/**
 * Bounds the password hashes in progress. They run in libuv's thread pool (four threads), which the signatures and
 * the file accesses of the whole process share: up to `concurrency` run, and up to `queue` wait. Others get 503 at once.
 */
import { unavailable, type EstuaryError } from '../../errors.ts';
import { FairLimiter, type FairLimiterOptions } from '../../process/fair-limiter.ts';

interface HashingPoolOptions {
  readonly concurrency: number;
  readonly queue: number;
  /** Seconds for the Retry-After of a 503. */
  readonly retryAfter: number;
}

export class HashingPool {
  readonly options: HashingPoolOptions;
  readonly #limiter: FairLimiter;

  constructor(options: HashingPoolOptions) {
    this.options = options;
    this.#limiter = passwordLimiter(options, options.retryAfter);
  }

  /** Hashes waiting for a permit. */
  get waiting(): number {
    return this.#limiter.waiting;
  }

  /**
   * Runs `work` when there is a permit; `waited` says whether it had to wait for it.
   *
   * @param urgent goes before all others and is never rejected: for administrators
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` when too many wait; otherwise what `work` throws
   */
  run<T>(work: (waited: boolean) => Promise<T>, { urgent = false } = {}): Promise<T> {
    return this.#limiter.run(work, { urgent });
  }
}

/** A limiter that rejects with 503 `PASSWORD_CHECK_BUSY`. @param retryAfter seconds */
export function passwordLimiter(options: Omit<FairLimiterOptions, 'busy'>, retryAfter: number): FairLimiter {
  return new FairLimiter({ ...options, busy: (detail) => passwordCheckBusy(retryAfter, detail) });
}

/** @param retryAfter seconds */
export function passwordCheckBusy(retryAfter: number, detail: string): EstuaryError {
  return unavailable('PASSWORD_CHECK_BUSY', 'too many passwords to check; try again later', { retryAfter, detail });
}

/**
 * Bounds the attempts under way for one lockout key: without it, a client that sends a thousand guesses at once would have them
 * all checked before the first failure is counted.
 */
export class AttemptLimiter {
  readonly #limiter: FairLimiter;

  /** @param perKey attempts of one key under way, and those that may wait */
  constructor(perKey: NonNullable<FairLimiterOptions['perKey']>, retryAfter: number) {
    this.#limiter = passwordLimiter({ concurrency: Infinity, queue: Infinity, perKey }, retryAfter);
  }

  /** Keys with attempts under way. */
  get keys(): number {
    return this.#limiter.keys;
  }

  /**
   * Runs `work` when each of the keys has room for it; `waited` says whether it had to wait.
   *
   * @param keys always in the same order, so that two attempts never wait for each other
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` when too many wait; otherwise what `work` throws
   */
  async run<T>(keys: readonly string[], work: (waited: boolean) => Promise<T>, waitedBefore = false): Promise<T> {
    const [key, ...others] = keys;
    if (key === undefined) return work(waitedBefore);
    return this.#limiter.run((waited) => this.run(others, work, waited || waitedBefore), { key });
  }
}
