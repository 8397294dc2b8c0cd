/**
 * Bounds the password hashes in progress. They run in libuv's thread pool (four threads), which the signatures and
 * the file accesses of the whole process share: as many as `concurrency` are at work, as many as `queue` wait, and a
 * request beyond that is answered 503 at once.
 */
import { unavailable } from '../../errors.ts';
import { NoTurnError, Turns } from '../../process/turns.ts';

export interface HashingPoolOptions {
  readonly concurrency: number;
  readonly queue: number;
  /** Seconds for the Retry-After of a 503. */
  readonly retryAfter: number;
}

export class HashingPool {
  readonly options: HashingPoolOptions;
  readonly #turns: Turns;

  constructor(options: HashingPoolOptions) {
    this.options = options;
    this.#turns = new Turns(options.concurrency, options.queue);
  }

  /** Hashes waiting for their turn. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /**
   * Runs `work` when its turn has come; `waited` tells it whether time has passed.
   *
   * @param urgent goes before all others and is never turned away: for administrators
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` when the queue is full; otherwise what `work` throws
   */
  run<T>(work: (waited: boolean) => Promise<T>, { urgent = false } = {}): Promise<T> {
    return inTurn(this.#turns, work, { urgent, retryAfter: this.options.retryAfter });
  }
}

/** As {@link HashingPool.run}, with any turns. */
export async function inTurn<T>(
  turns: Turns,
  work: (waited: boolean) => Promise<T>,
  { urgent = false, retryAfter }: { readonly urgent?: boolean; readonly retryAfter: number },
): Promise<T> {
  const waited = turns.full;
  await turns.enter(undefined, { urgent }).catch((error: unknown) => {
    if (!(error instanceof NoTurnError)) throw error;
    throw unavailable('PASSWORD_CHECK_BUSY', 'too many passwords to check; try again later', { retryAfter });
  });
  try {
    return await work(waited);
  } finally {
    turns.leave();
  }
}
