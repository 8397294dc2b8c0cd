/** Who may have an OCSP response signed when: less weight than enrolment, and no asker before the others. */
import { EstuaryError, unavailable } from '../errors.ts';
import { NoPermitError, Semaphore, type Limiter } from '../process/semaphore.ts';

/** One in so many of the signatures that a key makes at a time; the others are for certificates. */
const SHARE = 4;
/** Responses that may wait. */
const SHARED_WAITING = 64;
const PRIVATE_WAITING = 16;
/** Milliseconds that a request waits for each of its permits: less than clients wait for an answer. */
const LONGEST_WAIT = 3000;

export const BUSY = 'OCSP_BUSY';

/** Whether a permit was refused because there are too many requests. */
export const isBusy = (error: unknown): boolean => error instanceof EstuaryError && error.code === BUSY;

/** @throws EstuaryError 503 {@link BUSY} when the queue is full or the wait too long; otherwise what `work` throws */
export async function withPermit<T>(limiter: Limiter, work: () => Promise<T>): Promise<T> {
  await limiter.acquire(LONGEST_WAIT).catch((error: unknown) => {
    if (!(error instanceof NoPermitError)) throw error;
    throw unavailable(BUSY, 'There are more OCSP requests than can be answered.', { detail: error.message });
  });
  try {
    return await work();
  } finally {
    limiter.release();
  }
}

/**
 * Limits the signatures of one key. Only a few responses at a time stand in the key's own queue, where certificates stand
 * too: so however many are asked for, a certificate waits behind no more than those.
 */
export class SigningLimiter {
  readonly #all: Semaphore;
  /** Of the responses that only one asker can use (a nonce), one at a time stands in the queue of all. */
  readonly #private = new Semaphore(1, PRIVATE_WAITING);

  /** @param concurrency how many signatures the key makes at a time */
  constructor(concurrency: number) {
    this.#all = new Semaphore(Math.max(1, Math.floor(concurrency / SHARE)), SHARED_WAITING);
  }

  /** Signs what everybody may be given who asks the same. @throws as {@link withPermit} */
  shared<T>(sign: () => Promise<T>): Promise<T> {
    return withPermit(this.#all, sign);
  }

  /** Signs what is for one asker. @throws as {@link withPermit} */
  private<T>(sign: () => Promise<T>): Promise<T> {
    return withPermit(this.#private, () => withPermit(this.#all, sign));
  }
}
