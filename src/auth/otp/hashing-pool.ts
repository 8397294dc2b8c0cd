/**
 * Bounds the password hashes in progress. They run in libuv's thread pool (four threads), which the signatures and
 * the file accesses of the whole process share: as many as `concurrency` are at work, as many as `queue` wait, and a
 * request beyond that is answered 503 at once.
 */
import { unavailable } from '../../errors.ts';

export interface HashingPoolOptions {
  readonly concurrency: number;
  readonly queue: number;
  /** Seconds for the Retry-After of a 503. */
  readonly retryAfter: number;
}

export class HashingPool {
  readonly options: HashingPoolOptions;
  #active = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(options: HashingPoolOptions) {
    this.options = options;
  }

  /** Hashes waiting for their turn. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Runs `work` when its turn has come; `waited` tells it whether time has passed.
   *
   * @param urgent goes before all others and is never turned away: for administrators
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` when the queue is full; otherwise what `work` throws
   */
  async run<T>(work: (waited: boolean) => Promise<T>, { urgent = false } = {}): Promise<T> {
    const waited = this.#active >= this.options.concurrency;
    if (waited) await this.#turn(urgent);
    else this.#active++;
    try {
      return await work(waited);
    } finally {
      // The place goes to the next in line, or is free.
      const next = this.#waiting.shift();
      if (next === undefined) this.#active--;
      else next();
    }
  }

  #turn(urgent: boolean): Promise<void> {
    const { queue, retryAfter } = this.options;
    if (!urgent && this.#waiting.length >= queue)
      throw unavailable('PASSWORD_CHECK_BUSY', 'too many passwords to check; try again later', { retryAfter });
    return new Promise((resolve) => {
      if (urgent) this.#waiting.unshift(resolve);
      else this.#waiting.push(resolve);
    });
  }
}
