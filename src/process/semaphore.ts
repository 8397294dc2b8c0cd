/** Why a caller got no permit. */
export class NoPermitError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoPermitError';
  }
}

interface Waiter {
  go(): void;
  refuse(error: Error): void;
}

/** What bounds how many do something at once. */
export interface Limiter {
  /**
   * Waits for a permit, which the caller must {@link release}.
   *
   * @param waitMs how long to wait at most
   * @throws NoPermitError when the queue is full or the wait too long
   */
  acquire(waitMs: number): Promise<void>;
  /** Gives the permit back: to whoever has waited longest, if anybody waits. */
  release(): void;
}

/** Makes a {@link Limiter} of one holder at a time: the same name is the same mutex, on all nodes. */
export type MakeMutex = (name: string, queueLimit: number) => Limiter;

/**
 * At most `concurrency` holders at a time and a bounded, first-come queue of those who wait: the limiter used everywhere.
 * Libraries such as p-queue bound neither the queue nor the wait, and release with the end of the function that they call; a
 * generated key holds its permit until it is disposed of.
 */
export class Semaphore implements Limiter {
  readonly #concurrency: number;
  readonly #queueLimit: number;
  #waiting = new Set<Waiter>();
  #held = 0;

  constructor(concurrency: number, queueLimit: number) {
    this.#concurrency = concurrency;
    this.#queueLimit = queueLimit;
  }

  /** Whether nobody has a permit or waits for one. */
  get idle(): boolean {
    return this.#held === 0;
  }

  /** Whether whoever comes now has to wait. */
  get full(): boolean {
    return this.#held >= this.#concurrency;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * As {@link Limiter.acquire}.
   *
   * @param waitMs undefined: as long as it takes
   * @param urgent goes before all who wait, and is never turned away
   */
  acquire(waitMs?: number, { urgent = false } = {}): Promise<void> {
    if (!this.full) {
      this.#held += 1;
      return Promise.resolve();
    }
    if (!urgent && this.#waiting.size >= this.#queueLimit)
      return Promise.reject(new NoPermitError(`${this.#queueLimit} are waiting already`));
    return new Promise((resolve, reject) => {
      const timer =
        waitMs === undefined
          ? undefined
          : setTimeout(() => waiter.refuse(new NoPermitError(`not acquired within ${waitMs} ms`)), waitMs);
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(waiter);
      };
      const waiter: Waiter = {
        go: () => {
          settle();
          resolve();
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      if (urgent) this.#waiting = new Set([waiter, ...this.#waiting]);
      else this.#waiting.add(waiter);
    });
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#held -= 1;
    else next.go();
  }

  /** Sends away everybody who waits; holders keep their permits. */
  refuseWaiting(error: Error): void {
    for (const waiter of [...this.#waiting]) waiter.refuse(error);
  }
}
