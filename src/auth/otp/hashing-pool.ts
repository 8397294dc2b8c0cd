/**
 * Limits concurrent password hashes. They run in libuv's thread pool (16 threads), which signatures and file accesses
 * of the whole process share. Excess calls get 503 at once.
 */
import { unavailable, type EstuaryError } from '../../errors.ts';
import { FairLimiter, type FairLimiterOptions } from '../../process/fair-limiter.ts';

interface HashingPoolOptions {
  readonly concurrency: number;
  readonly queue: number;
  readonly retryAfter: number;
}

/** Rejects with 503 `PASSWORD_CHECK_BUSY` if too many wait. The hashes of administrators are urgent. */
export class HashingPool extends FairLimiter {
  readonly options: HashingPoolOptions;

  constructor(options: HashingPoolOptions) {
    super(passwordLimits(options, options.retryAfter));
    this.options = options;
  }
}

/** A limiter that rejects with 503 `PASSWORD_CHECK_BUSY`. */
export function passwordLimiter(options: Omit<FairLimiterOptions, 'busy'>, retryAfter: number): FairLimiter {
  return new FairLimiter(passwordLimits(options, retryAfter));
}

function passwordLimits(options: Omit<FairLimiterOptions, 'busy'>, retryAfter: number): FairLimiterOptions {
  return { ...options, busy: (detail) => passwordCheckBusy(retryAfter, detail) };
}

export function passwordCheckBusy(retryAfter: number, detail: string): EstuaryError {
  return unavailable('PASSWORD_CHECK_BUSY', 'too many passwords to check; try again later', { retryAfter, detail });
}

/**
 * Limits concurrent attempts per lockout key. Otherwise a client could have a thousand concurrent guesses checked
 * before the first failure counts.
 */
export class AttemptLimiter {
  readonly #limiter: FairLimiter;

  /** @param perKey running and waiting attempts per key */
  constructor(perKey: NonNullable<FairLimiterOptions['perKey']>, retryAfter: number) {
    this.#limiter = passwordLimiter({ concurrency: Infinity, queue: Infinity, perKey }, retryAfter);
  }

  get keys(): number {
    return this.#limiter.keys;
  }

  /** Whether an attempt with one of these keys runs or waits. */
  isBusy(keys: readonly string[]): boolean {
    return keys.some((key) => this.#limiter.has(key));
  }

  /**
   * Runs `work` with a permit of every key; `waited` says whether it had to wait.
   * @param keys always in the same order, to prevent deadlocks
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` if too many wait; otherwise the error of `work`
   */
  async run<T>(keys: readonly string[], work: (waited: boolean) => Promise<T>, waitedBefore = false): Promise<T> {
    const [key, ...others] = keys;
    if (key === undefined) return work(waitedBefore);
    return this.#limiter.run((waited) => this.run(others, work, waited || waitedBefore), { key });
  }
}
