/** Why a caller did not get its turn. */
export class NoTurnError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoTurnError';
  }
}

interface Waiter {
  go(): void;
  refuse(error: Error): void;
}

/** Somebody's turn at something that not everybody can do at once. */
export interface TurnTaker {
  /**
   * Waits for a turn, which the caller must {@link leave}.
   *
   * @param waitMs how long to wait at most
   * @throws NoTurnError when the queue is full or the wait too long
   */
  enter(waitMs: number): Promise<void>;
  /** Gives the turn to whoever has waited longest. */
  leave(): void;
}

/** Makes a {@link TurnTaker} of one turn at a time: the same name, the same turn, in all processes of the service. */
export type SingleTurns = (name: string, queueLimit: number) => TurnTaker;

/**
 * At most `concurrency` holders at a time and a bounded, first-come queue of those who wait: the one limiter of the house.
 * Libraries such as p-queue bound neither the queue nor the wait, and end a turn with the function that they call; a
 * generated key holds its turn until it is disposed of.
 */
export class Turns implements TurnTaker {
  readonly #concurrency: number;
  readonly #queueLimit: number;
  #waiting = new Set<Waiter>();
  #held = 0;

  constructor(concurrency: number, queueLimit: number) {
    this.#concurrency = concurrency;
    this.#queueLimit = queueLimit;
  }

  /** Whether nobody has a turn or waits for one. */
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
   * As {@link TurnTaker.enter}.
   *
   * @param waitMs undefined: as long as it takes
   * @param urgent goes before all who wait, and is never turned away
   */
  enter(waitMs?: number, { urgent = false } = {}): Promise<void> {
    if (!this.full) {
      this.#held += 1;
      return Promise.resolve();
    }
    if (!urgent && this.#waiting.size >= this.#queueLimit)
      return Promise.reject(new NoTurnError(`${this.#queueLimit} are waiting already`));
    return new Promise((resolve, reject) => {
      const timer =
        waitMs === undefined
          ? undefined
          : setTimeout(() => waiter.refuse(new NoTurnError(`no turn within ${waitMs} ms`)), waitMs);
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

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#held -= 1;
    else next.go();
  }

  /** Sends away everybody who waits; holders keep their turns. */
  refuseWaiting(error: Error): void {
    for (const waiter of [...this.#waiting]) waiter.refuse(error);
  }
}
