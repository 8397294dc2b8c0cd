/** Milliseconds after which a response is too slow to set the clock. */
const SLOW = 1000;

/**
 * The database's time on a node, so that all nodes compare times by one clock. Between two responses it follows the
 * process's monotonic clock, so changes of the machine's clock have no effect.
 */
export class DatabaseClock {
  /** The database's time minus the monotonic time. */
  #offset: number | undefined;

  /**
   * Sets the clock from a response.
   * @param time the database's time while it responded
   * @param sent when it was sent, by `performance.now()`
   */
  set(time: number, sent: number): void {
    const received = performance.now();
    if (this.#offset !== undefined && received - sent > SLOW) return;
    this.#offset = time - (sent + received) / 2;
  }

  readonly now = (): number => (this.#offset === undefined ? Date.now() : Math.round(performance.now() + this.#offset));

  /** Milliseconds that this machine's clock is ahead of the database's. */
  readonly skew = (): number => Date.now() - this.now();
}
