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

/** At most `concurrency` holders at a time and a bounded, first-come queue of those who wait. */
export class Turns implements TurnTaker {
  readonly #concurrency: number;
  readonly #queueLimit: number;
  readonly #waiting = new Set<Waiter>();
  #held = 0;

  constructor(concurrency: number, queueLimit: number) {
    this.#concurrency = concurrency;
    this.#queueLimit = queueLimit;
  }

  enter(waitMs: number): Promise<void> {
    if (this.#held < this.#concurrency) {
      this.#held += 1;
      return Promise.resolve();
    }
    if (this.#waiting.size >= this.#queueLimit)
      return Promise.reject(new NoTurnError(`${this.#queueLimit} are waiting already`));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => waiter.refuse(new NoTurnError(`no turn within ${waitMs} ms`)), waitMs);
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
      this.#waiting.add(waiter);
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
