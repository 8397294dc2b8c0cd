import { measured } from '../../dependency-calls.ts';
import { inTurn } from '../../process/turns.ts';
import { describe, EstuaryError, isRefusal, unavailable } from '../../errors.ts';
import { type Call, fromPlainError, type Reply, type Request, type Response } from './calls.ts';
import { type Link, lost, type OpenLink } from './link.ts';
import type { RevokedSerials } from './revoked-serials.ts';

/** Calls that may wait for an answer; above it the store is overloaded, and says so at once. */
const MAX_WAITING = 10_000;
/** Batch size at which a busy process stops waiting for more calls. */
const BATCH = 3;
/** Longest time in milliseconds that the first call of a batch waits. */
const BATCH_DELAY = 3;
/** Milliseconds before a thread that ended is started again; doubled up to the longest while it keeps ending. */
const RESTART_MIN = 50;
const RESTART_MAX = 5000;

export interface CallerOptions {
  readonly dependency: 'store_write' | 'store_read';
  readonly open: OpenLink;
  readonly now: () => number;
  /** Whether the event loop is busy. Calls are then batched: calls that share a message and a commit cost less. Absent: never. */
  readonly isBusy?: () => boolean;
  /** Receives the serial numbers that the writer reports as revoked. */
  readonly revoked?: RevokedSerials;
  /** Called when the database is older than the audit file (`STORE_BEHIND`). */
  readonly onBehind?: (error: EstuaryError) => void;
}

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Calls the thread that has the database open. Calls made in the same turn of the event loop share one message. When the thread ends, open
 * calls are rejected and the thread is started again.
 */
export class StoreCaller {
  readonly #options: CallerOptions;
  readonly #waiting = new Map<number, Waiting>();
  #link: Link | undefined;
  #operations: readonly string[] = [];
  #outbox: Call[] = [];
  #batch: NodeJS.Timeout | undefined;
  #lastId = 0;
  #pause = RESTART_MIN;
  #restartTimer: NodeJS.Timeout | undefined;
  #reason: EstuaryError | undefined;
  #restarting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #ended = Promise.withResolvers<undefined>();

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  /** Opens the link; rejects with what keeps it from working. */
  async start(): Promise<void> {
    const { revoked } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const ended = Promise.withResolvers<undefined>();
    const link = this.#options.open({
      response: (response) => {
        if ('replies' in response) {
          revoked?.add(response.revoked ?? []);
          this.#settle(response.replies);
        } else if ('ready' in response) {
          this.#begin(link, ended, response);
          resolve(undefined);
        }
      },
      end: (reason) => {
        reject(reason);
        ended.resolve(undefined);
        if (this.#link === link) this.#onEnd(reason);
      },
    });
    await promise;
  }

  /** The names of what it carries out, once it has started. */
  get operations(): readonly string[] {
    return this.#operations;
  }

  /** Carries an operation out on the other side. The caller knows its types; see store-calls.ts. */
  async call<Result>(operation: string, args: readonly unknown[]): Promise<Result> {
    if (this.#closing !== undefined) throw unavailable('STORE_UNAVAILABLE', 'the store is closed');
    if (this.#link === undefined) throw notSent(this.#reason ?? lost('not started'));
    if (this.#waiting.size >= MAX_WAITING)
      throw unavailable('STORE_UNAVAILABLE', 'the store is overloaded', { retryAfter: 1 });
    const id = ++this.#lastId;
    this.#outbox.push({ id, operation, args: args as readonly never[], time: this.#options.now() });
    this.#sendSoon();
    return measured(
      { dependency: this.#options.dependency },
      () => new Promise<Result>((resolve, reject) => this.#waiting.set(id, { resolve, reject })),
      (error) => !(error instanceof EstuaryError) || isRefusal(error),
    );
  }

  /** Lets the other side finish what is waiting, and ends the link. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#restartTimer);
    // A link that is just being opened has to be there before it can be ended.
    await this.#restarting;
    if (this.#link === undefined) return;
    this.#send();
    this.#post({ close: true });
    await this.#ended.promise;
  }

  #sendSoon(): void {
    const { length } = this.#outbox;
    if (length === 1 && this.#options.isBusy?.() === true) this.#batch = setTimeout(() => this.#send(), BATCH_DELAY);
    else if (length === 1 || (length === BATCH && this.#batch !== undefined)) setImmediate(() => this.#send());
  }

  #send(): void {
    clearTimeout(this.#batch);
    this.#batch = undefined;
    const calls = this.#outbox;
    this.#outbox = [];
    if (calls.length > 0) this.#post({ calls });
  }

  #post(request: Request): void {
    this.#link?.send(request);
  }

  #begin(link: Link, ended: PromiseWithResolvers<undefined>, ready: Extract<Response, { ready: unknown }>): void {
    this.#link = link;
    this.#ended = ended;
    this.#operations = ready.ready;
    if (ready.revoked !== undefined) this.#options.revoked?.begin(ready.revoked);
  }

  #settle(replies: readonly Reply[]): void {
    this.#pause = RESTART_MIN;
    for (const reply of replies) {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      inTurn(() => {
        if (reply.error !== undefined) waiting?.reject(this.#noticed(fromPlainError(reply.error)));
        else waiting?.resolve(reply.value as never);
      });
    }
  }

  #onEnd(reason: EstuaryError): void {
    this.#link = undefined;
    this.#options.revoked?.forget();
    this.#reason = reason;
    this.#outbox = [];
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
    this.#restartLater();
  }

  #noticed(error: EstuaryError): EstuaryError {
    if (error.code === 'STORE_BEHIND') this.#options.onBehind?.(error);
    return error;
  }

  #restartLater(): void {
    if (this.#closing !== undefined) return;
    const pause = this.#pause;
    this.#pause = Math.min(pause * 2, RESTART_MAX);
    this.#restartTimer = setTimeout(() => {
      this.#restarting = this.start().catch((error: unknown) => {
        this.#reason = this.#noticed(error instanceof EstuaryError ? error : lost(describe(error)));
        this.#restartLater();
      });
    }, pause);
  }
}

/** The reason of a call that never left: unlike of one that was under way, it is known that it did not happen. */
function notSent(reason: EstuaryError): EstuaryError {
  const { status, code, message, detail, retryAfter } = reason;
  return fromPlainError({ status, code, message, detail, retryAfter });
}
