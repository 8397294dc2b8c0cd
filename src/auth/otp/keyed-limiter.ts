/**
 * Bounds the attempts under way for one lockout key: without it, a client that sends a thousand guesses at once would
 * have them all checked before the first failure is counted, and would fill the queue of the hashing pool.
 */
import { Semaphore } from '../../process/semaphore.ts';
import { withPermit } from './hashing-pool.ts';

export interface KeyedLimiterOptions {
  /** Attempts of one key at a time. */
  readonly width: number;
  /** Attempts of one key that may wait. */
  readonly queue: number;
  /** Seconds for the Retry-After of a 503. */
  readonly retryAfter: number;
}

export class KeyedLimiter {
  readonly #options: KeyedLimiterOptions;
  readonly #semaphores = new Map<string, Semaphore>();

  constructor(options: KeyedLimiterOptions) {
    this.#options = options;
  }

  /** Keys with attempts under way. */
  get size(): number {
    return this.#semaphores.size;
  }

  /**
   * Runs `work` when each of the keys has room for it; `waited` tells it whether time has passed.
   *
   * @param keys always in the same order, so that two attempts never wait for each other
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` when too many wait; otherwise what `work` throws
   */
  async run<T>(keys: readonly string[], work: (waited: boolean) => Promise<T>, waitedBefore = false): Promise<T> {
    const [key, ...others] = keys;
    if (key === undefined) return work(waitedBefore);
    const { width, queue, retryAfter } = this.#options;
    const semaphore = this.#semaphores.get(key) ?? new Semaphore(width, queue);
    this.#semaphores.set(key, semaphore);
    try {
      return await withPermit(semaphore, (waited) => this.run(others, work, waited || waitedBefore), { retryAfter });
    } finally {
      // Another holder of this semaphore may have removed it already, and a new one stand in its place.
      if (semaphore.idle && this.#semaphores.get(key) === semaphore) this.#semaphores.delete(key);
    }
  }
}
