import { measured } from '../../dependency-calls.ts';
import { EstuaryError, isRefusal, unavailable } from '../../errors.ts';
import { inTurn } from '../../process/turns.ts';
import type { Call, Reply, Writer } from './calls.ts';
import { toStoreError } from './errors.ts';

/** Maximum waiting calls; beyond that the store is overloaded and rejects new ones. */
export const MAX_WAITING = 10_000;
/** Maximum calls per transaction, so that the next transaction does not wait long. */
const MAX_GROUP = 256;

interface Waiting {
  readonly call: Call;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** Whether an error is an answer of the store rather than a failure. */
export const isAnswer = (error: unknown): boolean => !(error instanceof EstuaryError) || isRefusal(error);

/**
 * The writes of this process. Calls that arrive in one turn of the event loop, or while a group is being committed,
 * share the next transaction: under load more calls share a commit.
 */
export class WriteQueue {
  readonly #writer: Writer;
  readonly #now: () => number;
  readonly #onBehind: (error: EstuaryError) => void;
  #waiting: Waiting[] = [];
  /** Calls of the group that is being committed. */
  #underWay = 0;
  /** Work to run between two groups. */
  #alone: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** @param onBehind called if the database is older than the audit file (`STORE_BEHIND`) */
  constructor(writer: Writer, now: () => number, onBehind: (error: EstuaryError) => void = () => undefined) {
    this.#writer = writer;
    this.#now = now;
    this.#onBehind = onBehind;
  }

  get operations(): readonly string[] {
    return this.#writer.operations;
  }

  /** Runs an operation. The caller knows its types; see store-calls.ts. */
  async call<Result>(operation: string, args: readonly unknown[]): Promise<Result> {
    if (this.#closing !== undefined) throw unavailable('STORE_UNAVAILABLE', 'the store is closed');
    if (this.#waiting.length + this.#underWay >= MAX_WAITING)
      throw unavailable('STORE_UNAVAILABLE', 'the store is overloaded', { retryAfter: 1 });
    const call = { operation, args: args as readonly never[], time: this.#now() };
    return measured(
      { dependency: 'store_write' },
      () =>
        new Promise<Result>((resolve, reject) => {
          this.#waiting.push({ call, resolve, reject });
          this.#start();
        }),
      isAnswer,
    );
  }

  /** Runs work while no transaction is open. */
  async between<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) throw unavailable('STORE_UNAVAILABLE', 'the store is closed');
    return new Promise((resolve, reject) => {
      this.#alone.push(() => work().then(resolve, reject));
      this.#start();
    });
  }

  /** Resolves when all waiting calls are complete. */
  close(): Promise<void> {
    this.#closing ??= Promise.resolve(this.#running);
    return this.#closing;
  }

  #start(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // Let the other calls of this turn join the first group.
    await new Promise(setImmediate);
    while (this.#waiting.length + this.#alone.length > 0) {
      for (const work of this.#alone.splice(0)) await work();
      const group = this.#waiting.splice(0, MAX_GROUP);
      if (group.length === 0) continue;
      this.#underWay = group.length;
      const replies = await this.#writer.carryOut(group.map(({ call }) => call)).catch(failedAll);
      this.#underWay = 0;
      const behind = replies.find(({ error }) => error?.code === 'STORE_BEHIND')?.error;
      if (behind !== undefined) this.#onBehind(behind);
      for (const [n, waiting] of group.entries()) inTurn(() => settle(waiting, replies[n]));
      // Let calls that the replies cause join the next group.
      if (this.#waiting.length === 0) await new Promise(setImmediate);
    }
    // Not later: a call in the next microtask must restart it.
    this.#running = undefined;
  }
}

/** A writer that rejects does not stop the queue. */
const failedAll = (error: unknown): readonly Reply[] => Array<Reply>(MAX_GROUP).fill({ error: toStoreError(error) });

function settle({ resolve, reject }: Waiting, reply: Reply | undefined): void {
  if (reply?.error === undefined) resolve(reply?.value as never);
  else reject(reply.error);
}
