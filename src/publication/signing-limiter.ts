/** Who may have an OCSP response signed when: less weight than enrolment, and no asker before the others. */
import { EstuaryError, unavailable } from '../errors.ts';
import { FairLimiter } from '../process/fair-limiter.ts';

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

/** A limiter of OCSP requests. */
export class OcspLimiter {
  readonly #limiter: FairLimiter;

  constructor(concurrency: number, queue: number) {
    this.#limiter = new FairLimiter({
      concurrency,
      queue,
      busy: (detail) => unavailable(BUSY, 'There are more OCSP requests than can be answered.', { detail }),
    });
  }

  /** @throws EstuaryError 503 {@link BUSY} when too many wait, or too long; otherwise what `work` throws */
  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#limiter.run(work, { waitMs: LONGEST_WAIT });
  }
}

/**
 * Limits the signatures of one key. Only a few responses at a time stand in the key's own queue, where certificates stand
 * too: so however many are asked for, a certificate waits behind no more than those.
 */
export class SigningLimiter {
  readonly #all: OcspLimiter;
  /** Of the responses that only one asker can use (a nonce), one at a time stands in the queue of all. */
  readonly #private = new OcspLimiter(1, PRIVATE_WAITING);

  /** @param concurrency how many signatures the key makes at a time */
  constructor(concurrency: number) {
    this.#all = new OcspLimiter(Math.max(1, Math.floor(concurrency / SHARE)), SHARED_WAITING);
  }

  /** Signs what everybody may be given who asks the same. @throws as {@link OcspLimiter.run} */
  shared<T>(sign: () => Promise<T>): Promise<T> {
    return this.#all.run(sign);
  }

  /** Signs what is for one asker. @throws as {@link OcspLimiter.run} */
  private<T>(sign: () => Promise<T>): Promise<T> {
    return this.#private.run(() => this.#all.run(sign));
  }
}
