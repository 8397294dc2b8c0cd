/** Milliseconds after which an answer is too slow to set a clock by it. */
const SLOW = 1000;

/**
 * The database's time on a node, so that all nodes compare times by one clock. Between two answers of the database it follows this process's
 * monotonic clock, so a change of the machine's clock does not change it.
 */
export class DatabaseClock {
  /** The database's time minus the monotonic time. */
  #offset: number | undefined;

  /**
   * Sets the clock by an answer of the database.
   *
   * @param time the database's time while it answered, milliseconds since the epoch
   * @param sent when it was asked, by `performance.now()`
   */
  set(time: number, sent: number): void {
    const received = performance.now();
    if (this.#offset !== undefined && received - sent > SLOW) return;
    this.#offset = time - (sent + received) / 2;
  }

  /** Milliseconds since the epoch. */
  readonly now = (): number => (this.#offset === undefined ? Date.now() : Math.round(performance.now() + this.#offset));

  /** Milliseconds that this machine's clock is ahead of the database's. */
  readonly skew = (): number => Date.now() - this.now();
}
