import { Worker } from 'node:worker_threads';
import { measured } from '../../dependency-calls.ts';
import { describe, EstuaryError, isRefusal, unavailable } from '../../errors.ts';
import { siblingModule } from '../../process/sibling-module.ts';
import { type Call, fromPlainError, type Request, type Response, type WorkerOptions } from './calls.ts';
import type { RevokedSerials } from './revoked-serials.ts';

/** Calls that may wait for the thread; above it the store is overloaded, and says so at once. */
const MAX_WAITING = 10_000;
/** Milliseconds before a thread that died is started again; doubled up to the second while it keeps dying. */
const RESTART_MIN = 50;
const RESTART_MAX = 5000;

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One thread of the store, seen from the main thread. Calls made in the same turn of the event loop travel in one
 * message. When the thread dies, what was under way is rejected and a new thread is started.
 */
export class StoreThread {
  readonly #options: Omit<WorkerOptions, 'time'>;
  readonly #now: () => number;
  readonly #revoked: RevokedSerials | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #operations: readonly string[] = [];
  #outbox: Call[] = [];
  #lastId = 0;
  #restartDelay = RESTART_MIN;
  #restartTimer: NodeJS.Timeout | undefined;
  #reason: EstuaryError | undefined;
  #restarting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** @param revoked where the thread's word on what is revoked goes */
  constructor(options: Omit<WorkerOptions, 'time'>, now: () => number, revoked?: RevokedSerials) {
    this.#revoked = revoked;
    this.#options = options;
    this.#now = now;
  }

  /** Starts the thread; rejects with what keeps it from working. */
  async start(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const workerData: WorkerOptions = { ...this.#options, time: this.#now() };
    const worker = new Worker(siblingModule(import.meta.url, './worker'), {
      workerData,
      name: `estuary-store-${this.#options.role}`,
    });
    let died: EstuaryError | undefined;
    worker.on('message', (response: Response) => {
      if ('replies' in response) {
        // Before whoever revoked is told.
        if (response.revoked !== undefined) this.#revoked?.add(response.revoked);
        this.#settle(response.replies);
      } else if ('failed' in response) died = fromPlainError(response.failed);
      else {
        this.#worker = worker;
        if (response.revoked !== undefined) this.#revoked?.begin(response.revoked);
        this.#operations = response.ready;
        resolve(undefined);
      }
    });
    worker.on('error', (error: unknown) => {
      died = gone(error instanceof Error ? (error.stack ?? error.message) : String(error));
    });
    worker.on('exit', (code) => {
      const reason = died ?? gone(`the ${this.#options.role} thread ended with code ${code}`);
      reject(reason);
      if (this.#worker === worker) this.#onDeath(reason);
    });
    await promise;
  }

  /** The names of what it carries out, once it has started. */
  get operations(): readonly string[] {
    return this.#operations;
  }

  /** Carries an operation out in the thread. The caller knows its types; see thread-calls.ts. */
  async call<Result>(operation: string, args: readonly unknown[]): Promise<Result> {
    if (this.#closing !== undefined) throw unavailable('STORE_UNAVAILABLE', 'the store is closed');
    if (this.#worker === undefined) throw this.#reason ?? gone('not started');
    if (this.#waiting.size >= MAX_WAITING)
      throw unavailable('STORE_UNAVAILABLE', 'the store is overloaded', { retryAfter: 1 });
    const id = ++this.#lastId;
    if (this.#outbox.length === 0) setImmediate(() => this.#send());
    this.#outbox.push({ id, operation, args: args as readonly never[], time: this.#now() });
    const dependency = this.#options.role === 'writer' ? 'store_write' : 'store_read';
    return measured(
      { dependency },
      () => new Promise<Result>((resolve, reject) => this.#waiting.set(id, { resolve, reject })),
      (error) => !(error instanceof EstuaryError) || isRefusal(error),
    );
  }

  /** Lets the thread finish what is waiting, and ends it. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#restartTimer);
    // A thread that is just starting has to be there before it can be ended.
    await this.#restarting;
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#send();
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    this.#post({ close: true });
    await ended;
  }

  #send(): void {
    const calls = this.#outbox;
    this.#outbox = [];
    if (calls.length > 0) this.#post({ calls });
  }

  #post(request: Request): void {
    this.#worker?.postMessage(request);
  }

  #settle(replies: Extract<Response, { replies: unknown }>['replies']): void {
    this.#restartDelay = RESTART_MIN;
    for (const reply of replies) {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (reply.error !== undefined) waiting?.reject(fromPlainError(reply.error));
      else waiting?.resolve(reply.value as never);
    }
  }

  #onDeath(reason: EstuaryError): void {
    this.#worker = undefined;
    this.#revoked?.forget();
    this.#reason = reason;
    this.#outbox = [];
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
    this.#restartLater();
  }

  #restartLater(): void {
    if (this.#closing !== undefined) return;
    const delay = this.#restartDelay;
    this.#restartDelay = Math.min(delay * 2, RESTART_MAX);
    this.#restartTimer = setTimeout(() => {
      this.#restarting = this.start().catch((error: unknown) => {
        this.#reason = error instanceof EstuaryError ? error : gone(describe(error));
        this.#restartLater();
      });
    }, delay);
  }
}

function gone(detail: string): EstuaryError {
  return unavailable('STORE_UNAVAILABLE', 'the store cannot be used at present', { detail, retryAfter: 1 });
}
