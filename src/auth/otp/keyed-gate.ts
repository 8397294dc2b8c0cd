/**
 * Bounds the attempts under way for one lockout key: without it, a client that sends a thousand guesses at once would
 * have them all checked before the first failure is counted, and would fill the queue of the hashing pool.
 */
import { unavailable } from '../../errors.ts';

export interface KeyedGateOptions {
  /** Attempts of one key at a time. */
  readonly width: number;
  /** Attempts of one key that may wait. */
  readonly queue: number;
  /** Seconds for the Retry-After of a 503. */
  readonly retryAfter: number;
}

interface Lane {
  active: number;
  readonly waiting: (() => void)[];
}

export class KeyedGate {
  readonly #options: KeyedGateOptions;
  readonly #lanes = new Map<string, Lane>();

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
    const lane = this.#lanes.get(key) ?? { active: 0, waiting: [] };
    this.#lanes.set(key, lane);
    const waited = lane.active >= this.#options.width;
    if (waited) await this.#turn(lane);
    else lane.active++;
    try {
      return await this.run(others, work, waited || waitedBefore);
    } finally {
      const next = lane.waiting.shift();
      if (next !== undefined) next();
      else if (--lane.active === 0) this.#lanes.delete(key);
    }
  }

  #turn(lane: Lane): Promise<void> {
    const { queue, retryAfter } = this.#options;
    if (lane.waiting.length >= queue)
      throw unavailable('PASSWORD_CHECK_BUSY', 'too many passwords to check; try again later', { retryAfter });
    return new Promise((resolve) => {
      lane.waiting.push(resolve);
    });
  }
}
