/** Who may have an OCSP response signed when: less weight than enrolment, and no asker before the others. */
import { EstuaryError, unavailable } from '../errors.ts';
import { NoTurnError, Turns, type TurnTaker } from '../process/turns.ts';

/** One in so many of the signatures that a key makes at a time; the others are for certificates. */
const SHARE = 4;
/** Responses that may wait. */
const SHARED_WAITING = 64;
const PRIVATE_WAITING = 16;
/** Milliseconds that a request waits for each of its turns: less than clients wait for an answer. */
const LONGEST_WAIT = 3000;

export const BUSY = 'OCSP_BUSY';

/** Whether a turn was refused because there are too many requests. */
export const isBusy = (error: unknown): boolean => error instanceof EstuaryError && error.code === BUSY;

/** @throws EstuaryError 503 {@link BUSY} when the queue is full or the wait too long; otherwise what `work` throws */
export async function inTurn<T>(turns: TurnTaker, work: () => Promise<T>): Promise<T> {
  await turns.enter(LONGEST_WAIT).catch((error: unknown) => {
    if (!(error instanceof NoTurnError)) throw error;
    throw unavailable(BUSY, 'There are more OCSP requests than can be answered.', { detail: error.message });
  });
  try {
    return await work();
  } finally {
    turns.leave();
  }
}

/**
 * The turns at one key. Only a few responses at a time stand in the key's own queue, where certificates stand too: so
 * however many are asked for, a certificate waits behind no more than those.
 */
export class SigningTurns {
  readonly #all: Turns;
  /** Of the responses that only one asker can use (a nonce), one at a time stands in the queue of all. */
  readonly #private = new Turns(1, PRIVATE_WAITING);

  /** @param concurrency how many signatures the key makes at a time */
  constructor(concurrency: number) {
    this.#all = new Turns(Math.max(1, Math.floor(concurrency / SHARE)), SHARED_WAITING);
  }

  /** Signs what everybody may be given who asks the same. @throws as {@link inTurn} */
  shared<T>(sign: () => Promise<T>): Promise<T> {
    return inTurn(this.#all, sign);
  }

  /** Signs what is for one asker. @throws as {@link inTurn} */
  private<T>(sign: () => Promise<T>): Promise<T> {
    return inTurn(this.#private, () => inTurn(this.#all, sign));
  }
}
