import { measured } from '../../dependency-calls.ts';
import { EstuaryError, isRefusal, unavailable } from '../../errors.ts';
import { inTurn } from '../../process/turns.ts';
import type { WriteOperation } from '../operation.ts';
import { leaseLost, toStoreError } from './errors.ts';

/** Maximum waiting calls; beyond that the store is overloaded and rejects new ones. */
export const MAX_WAITING = 10_000;
/** Maximum calls per transaction, so that the next transaction does not wait long. */
const MAX_GROUP = 256;

/** A write waiting for its transaction. */
export interface Call {
  readonly operation: WriteOperation;
  /** Typed by the operation. */
  readonly args: readonly never[];
  /** Time of the call and of its audit records. */
  readonly time: number;
}

export type Reply = { readonly value: unknown; readonly error?: undefined } | { readonly error: EstuaryError };

/** Carries out the writes of a store. */
export interface Writer {
  /** One reply per call, in order. Never rejects, and is not called again before it has resolved. */
  carryOut(calls: readonly Call[]): Promise<readonly Reply[]>;
}

export interface QueueOptions {
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: () => number;
  /** Called when the database is found to be older than the audit file; nothing can be written from then on. */
  readonly onBehind?: (error: EstuaryError) => void;
  /** Whether the other nodes certainly consider this node alive. Absent with one node. */
  readonly isHeld?: () => boolean;
}

interface Waiting {
  readonly call: Call;
  readonly resolve: (value: unknown) => void;
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
  readonly #options: QueueOptions;
  #waiting: Waiting[] = [];
  /** Calls of the group that is being committed. */
  #underWay = 0;
  /** Work to run between two groups. */
  #alone: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(writer: Writer, options: QueueOptions) {
    this.#writer = writer;
    this.#options = options;
  }

  /** The call of an operation. */
  callOf(operation: WriteOperation): (...args: never[]) => Promise<unknown> {
    return (...args) => this.#call(operation, args);
  }

  async #call(operation: WriteOperation, args: readonly never[]): Promise<unknown> {
    const { now = Date.now, isHeld } = this.#options;
    if (this.#closing !== undefined) throw unavailable('STORE_UNAVAILABLE', 'the store is closed');
    if (operation.kind === 'begins' && isHeld?.() === false)
      throw leaseLost('the other nodes may consider this node dead');
    if (this.#waiting.length + this.#underWay >= MAX_WAITING)
      throw unavailable('STORE_UNAVAILABLE', 'the store is overloaded', { retryAfter: 1 });
    const call = { operation, args, time: now() };
    const done = measured(
      { dependency: 'store_write' },
      () =>
        new Promise<unknown>((resolve, reject) => {
          this.#waiting.push({ call, resolve, reject });
          this.#start();
        }),
      isAnswer,
    );
    return operation.kind === 'completes' && isHeld !== undefined ? done.catch(refuseClosed) : done;
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
      if (behind !== undefined) this.#options.onBehind?.(behind);
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
  if (reply?.error === undefined) resolve(reply?.value);
  else reject(reply.error);
}

function refuseClosed(error: unknown): never {
  if (error instanceof EstuaryError && error.code === 'RESERVATION_NOT_OPEN')
    throw leaseLost('another node considered this node dead and closed the reservation', error);
  throw error;
}
