/**
 * Bounds the password hashes in progress. They run in libuv's thread pool (four threads), which the signatures and
 * the file accesses of the whole process share: as many as `concurrency` are at work, as many as `queue` wait, and a
 * request beyond that is answered 503 at once.
 */
import { unavailable } from '../../errors.ts';
import { NoPermitError, Semaphore } from '../../process/semaphore.ts';

export interface HashingPoolOptions {
  readonly concurrency: number;
  readonly queue: number;
  /** Seconds for the Retry-After of a 503. */
  readonly retryAfter: number;
}

export class HashingPool {
  readonly options: HashingPoolOptions;
  readonly #semaphore: Semaphore;

  constructor(options: HashingPoolOptions) {
    this.options = options;
    this.#semaphore = new Semaphore(options.concurrency, options.queue);
  }

  /** Hashes waiting for a permit. */
  get waiting(): number {
    return this.#semaphore.waiting;
  }

  /**
   * Runs `work` when there is a permit; `waited` tells it whether time has passed.
   *
   * @param urgent goes before all others and is never turned away: for administrators
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` when the queue is full; otherwise what `work` throws
   */
  run<T>(work: (waited: boolean) => Promise<T>, { urgent = false } = {}): Promise<T> {
    return withPermit(this.#semaphore, work, { urgent, retryAfter: this.options.retryAfter });
  }
}

/** As {@link HashingPool.run}, with any semaphore. */
export async function withPermit<T>(
  semaphore: Semaphore,
  work: (waited: boolean) => Promise<T>,
  { urgent = false, retryAfter }: { readonly urgent?: boolean; readonly retryAfter: number },
): Promise<T> {
  const waited = semaphore.full;
  await semaphore.acquire(undefined, { urgent }).catch((error: unknown) => {
    if (!(error instanceof NoPermitError)) throw error;
    throw unavailable('PASSWORD_CHECK_BUSY', 'too many passwords to check; try again later', { retryAfter });
  });
  try {
    return await work(waited);
  } finally {
    semaphore.release();
  }
}
