/** Bounds how many do something at once, and shares the turns fairly between those for whom it is done. */
import { currentParty } from '../request-context.ts';

/** A caller got no permit: too many wait, or the wait was too long. */
export class NoPermitError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoPermitError';
  }
}

/** Gives a permit back. A second call does nothing. */
export type Release = () => void;

interface AcquireOptions {
  /** Milliseconds to wait at most; undefined: no limit. */
  readonly waitMs?: number;
  /** Whose turn it takes; the party of the current request unless given. */
  readonly key?: string;
  /** Goes before all who wait, and is never rejected. */
  readonly urgent?: boolean;
}

export interface Limiter {
  /**
   * Waits for a permit.
   *
   * @throws NoPermitError when too many wait, or the wait is too long
   */
  acquire(options: { readonly waitMs: number }): Promise<Release>;
}

/** Makes a {@link Limiter} of one holder at a time: the same name is the same mutex, on all nodes of the service. */
export type MakeMutex = (name: string, queueLimit: number) => Limiter;

export interface FairLimiterOptions {
  /** Permits in all. */
  readonly concurrency: number;
  /** Callers that may wait in all. */
  readonly queue: number;
  /** The same for the callers of one key. Absent: limited by the totals only. */
  readonly perKey?: { readonly concurrency: number; readonly queue: number };
  /** Makes the error of a caller that gets no permit; a {@link NoPermitError} unless given. */
  readonly busy?: (detail: string) => Error;
}

interface Waiter {
  grant(): void;
  reject(error: Error): void;
}

/** The callers of one key. */
interface Party {
  readonly key: string;
  held: number;
  /** The oldest first. */
  readonly waiting: Waiter[];
}

/**
 * Permits go round-robin to the keys that wait, so many callers of one key do not delay another key's first. When the queue is
 * full, a caller of a key with few waiting takes the place of the newest caller of the key with the most.
 *
 * Libraries such as p-queue bound neither the queue nor the wait, and release when the function that they call ends; a
 * generated key holds its permit until it is disposed of.
 */
export class FairLimiter implements Limiter {
  readonly #options: FairLimiterOptions;
  readonly #parties = new Map<string, Party>();
  /** Parties that wait and may have another permit, in the order of their turns. */
  readonly #turns = new Set<Party>();
  readonly #urgent: Waiter[] = [];
  #held = 0;
  #waiting = 0;

  constructor(options: FairLimiterOptions) {
    this.#options = options;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting + this.#urgent.length;
  }

  /** Keys with holders, or with callers that wait. */
  get keys(): number {
    return this.#parties.size;
  }

  /** @throws what {@link FairLimiterOptions.busy} makes of the reason */
  async acquire(options: AcquireOptions = {}): Promise<Release> {
    return this.#take(options) ?? this.#wait(options);
  }

  /**
   * Runs `work` with a permit; its argument says whether the caller had to wait.
   *
   * @throws as {@link acquire}; otherwise what `work` throws
   */
  async run<T>(work: (waited: boolean) => Promise<T>, options: AcquireOptions = {}): Promise<T> {
    const free = this.#take(options);
    const release = free ?? (await this.#wait(options));
    try {
      return await work(free === undefined);
    } finally {
      release();
    }
  }

  /** Rejects all who wait; holders keep their permits. */
  rejectWaiting(error: Error): void {
    const waiting = [...this.#parties.values()].flatMap((party) => party.waiting);
    for (const waiter of [...this.#urgent, ...waiting]) waiter.reject(error);
  }

  #party(key = currentParty()): Party {
    const party = this.#parties.get(key) ?? { key, held: 0, waiting: [] };
    this.#parties.set(key, party);
    return party;
  }

  #forgetIdle(party: Party): void {
    if (party.held === 0 && party.waiting.length === 0) this.#parties.delete(party.key);
  }

  #mayHoldMore({ held }: Party): boolean {
    return held < (this.#options.perKey?.concurrency ?? Infinity);
  }

  /** A permit, if one is free. */
  #take({ key, urgent = false }: AcquireOptions): Release | undefined {
    if (this.#held >= this.#options.concurrency) return undefined;
    const party = this.#party(key);
    return urgent || this.#mayHoldMore(party) ? this.#grant(party) : undefined;
  }

  #grant(party: Party): Release {
    this.#held += 1;
    party.held += 1;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#held -= 1;
      party.held -= 1;
      this.#updateTurn(party);
      const [next] = this.#turns;
      (this.#urgent[0] ?? next?.waiting[0])?.grant();
      this.#forgetIdle(party);
    };
  }

  /** A party that is in the round keeps its place there. */
  #updateTurn(party: Party): void {
    if (party.waiting.length > 0 && this.#mayHoldMore(party)) this.#turns.add(party);
    else this.#turns.delete(party);
  }

  #wait({ key, urgent = false, waitMs }: AcquireOptions): Promise<Release> {
    const party = this.#party(key);
    if (!urgent && !this.#makePlace(party)) {
      const detail = `${this.waiting} wait already, ${party.waiting.length} of them for this requester`;
      this.#forgetIdle(party);
      return Promise.reject(this.#busy(detail));
    }
    const queue = urgent ? this.#urgent : party.waiting;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        queue.splice(queue.indexOf(waiter), 1);
        if (!urgent) this.#waiting -= 1;
      };
      const waiter: Waiter = {
        grant: () => {
          leave();
          const holder = this.#party(party.key);
          if (!urgent) this.#turns.delete(holder);
          const release = this.#grant(holder);
          this.#updateTurn(holder);
          resolve(release);
        },
        reject: (error) => {
          leave();
          this.#updateTurn(party);
          this.#forgetIdle(party);
          reject(error);
        },
      };
      const timer =
        waitMs === undefined
          ? undefined
          : setTimeout(() => waiter.reject(this.#busy(`no permit within ${waitMs} ms`)), waitMs);
      queue.push(waiter);
      if (!urgent) this.#waiting += 1;
      this.#updateTurn(party);
    });
  }

  /** Whether one more caller of a party may wait. */
  #makePlace(party: Party): boolean {
    const { queue, perKey } = this.#options;
    if (party.waiting.length >= (perKey?.queue ?? Infinity)) return false;
    if (this.#waiting < queue) return true;
    let longest = party;
    for (const other of this.#parties.values()) if (other.waiting.length > longest.waiting.length) longest = other;
    if (longest.waiting.length <= party.waiting.length + 1) return false;
    longest.waiting.at(-1)?.reject(this.#busy('displaced by a requester with fewer requests'));
    return true;
  }

  #busy(detail: string): Error {
    return this.#options.busy?.(detail) ?? new NoPermitError(detail);
  }
}
