/**
 * Bounds the attempts under way for one lockout key: without it, a client that sends a thousand guesses at once would
 * have them all checked before the first failure is counted, and would fill the queue of the hashing pool.
 */
import { Turns } from '../../process/turns.ts';
import { inTurn } from './hashing-pool.ts';

export interface KeyedGateOptions {
  /** Attempts of one key at a time. */
  readonly width: number;
  /** Attempts of one key that may wait. */
  readonly queue: number;
  /** Seconds for the Retry-After of a 503. */
  readonly retryAfter: number;
}

export class KeyedGate {
  readonly #options: KeyedGateOptions;
  readonly #lanes = new Map<string, Turns>();

  constructor(options: KeyedGateOptions) {
    this.#options = options;
  }

  /** Keys with attempts under way. */
  get size(): number {
    return this.#lanes.size;
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
    const lane = this.#lanes.get(key) ?? new Turns(width, queue);
    this.#lanes.set(key, lane);
    try {
      return await inTurn(lane, (waited) => this.run(others, work, waited || waitedBefore), { retryAfter });
    } finally {
      // Another of this lane may have removed it already, and a new one stand in its place.
      if (lane.idle && this.#lanes.get(key) === lane) this.#lanes.delete(key);
    }
  }
}
