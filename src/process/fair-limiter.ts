/** Limits concurrency and shares it fairly between keys. */
import { currentParty } from '../request-context.ts';

/** No permit: too many callers wait, or the wait was too long. */
export class NoPermitError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoPermitError';
  }
}

/** Releases a permit; idempotent. */
export type Release = () => void;

interface AcquireOptions {
  /** Maximum wait in milliseconds; default: unlimited. */
  readonly waitMs?: number;
  /** The key that shares its turns; default: the party of the current request. */
  readonly key?: string;
  /** Precedes all waiting callers and is never rejected. */
  readonly urgent?: boolean;
}

export interface Limiter {
  /** @throws NoPermitError if too many callers wait, or the wait is too long */
  acquire(options: { readonly waitMs: number }): Promise<Release>;
}

/** Creates a {@link Limiter} with one permit: the same name is the same mutex on all nodes. */
export type MakeMutex = (name: string, queueLimit: number) => Limiter;

export interface FairLimiterOptions {
  /** Total permits. */
  readonly concurrency: number;
  /** Total waiting callers. */
  readonly queue: number;
  /** Limits per key; default: only the totals. */
  readonly perKey?: { readonly concurrency: number; readonly queue: number };
  /** Creates the error of a rejected caller; default: {@link NoPermitError}. */
  readonly busy?: (detail: string) => Error;
}

interface Waiter {
  grant(): void;
  reject(error: Error): void;
}

interface Party {
  readonly key: string;
  held: number;
  /** Oldest first. */
  readonly waiting: Waiter[];
}

/**
 * Grants permits round-robin across keys, so many callers of one key do not delay another key's first. If the queue is
 * full, a caller of a key with few waiting callers displaces the latest caller of the key with the most.
 *
 * Libraries such as p-queue bound neither the queue nor the wait, and they release with the called function; a
 * generated key holds its permit until it is disposed.
 */
export class FairLimiter implements Limiter {
  readonly #options: FairLimiterOptions;
  readonly #parties = new Map<string, Party>();
  /** Waiting parties below their limit, in turn order. */
  readonly #turns = new Set<Party>();
  readonly #urgent: Waiter[] = [];
  #concurrency: number;
  #held = 0;
  #waiting = 0;

  constructor(options: FairLimiterOptions) {
    this.#options = options;
    this.#concurrency = options.concurrency;
  }

  /** Changes the total permits; holders keep theirs. */
  resize(concurrency: number): void {
    this.#concurrency = concurrency;
    this.#grantNext();
  }

  get waiting(): number {
    return this.#waiting + this.#urgent.length;
  }

  get keys(): number {
    return this.#parties.size;
  }

  /** Whether a caller of this key holds a permit or waits. */
  has(key: string): boolean {
    return this.#parties.has(key);
  }

  /** @throws the error of {@link FairLimiterOptions.busy} */
  async acquire(options: AcquireOptions = {}): Promise<Release> {
    return this.#take(options) ?? this.#wait(options);
  }

  /**
   * Runs `work` with a permit; its argument says whether the caller waited.
   * @throws as {@link acquire}; otherwise the error of `work`
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

  /** Rejects all waiting callers; holders keep their permits. */
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

  #take({ key, urgent = false }: AcquireOptions): Release | undefined {
    if (this.#held >= this.#concurrency) return undefined;
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
      this.#grantNext();
      this.#forgetIdle(party);
    };
  }

  #grantNext(): void {
    while (this.#held < this.#concurrency) {
      const [next] = this.#turns;
      const waiter = this.#urgent[0] ?? next?.waiting[0];
      if (waiter === undefined) return;
      waiter.grant();
    }
  }

  /** A party in the round keeps its place. */
  #updateTurn(party: Party): void {
    if (party.waiting.length > 0 && this.#mayHoldMore(party)) this.#turns.add(party);
    else this.#turns.delete(party);
  }

  #wait({ key, urgent = false, waitMs }: AcquireOptions): Promise<Release> {
    const party = this.#party(key);
    if (!urgent && !this.#reserveSlot(party)) {
      const detail = `${this.waiting} requests already wait, ${party.waiting.length} of them from this requester`;
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
  #reserveSlot(party: Party): boolean {
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
