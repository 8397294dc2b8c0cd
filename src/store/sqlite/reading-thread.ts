import { Worker } from 'node:worker_threads';
import { measured } from '../../dependency-calls.ts';
import { describe, unavailable } from '../../errors.ts';
import { startedModule } from '../../process/protocol.ts';
import { fromPlainError, type PlainError } from '../calls/calls.ts';
import { StoreLost } from '../calls/errors.ts';
import { isAnswer, MAX_WAITING } from '../calls/write-queue.ts';

/** A call, as a message to the thread. */
export interface Request {
  readonly id: number;
  readonly operation: string;
  readonly args: readonly never[];
}

export type Response = { readonly id: number } & (
  { readonly value: unknown; readonly error?: undefined } | { readonly error: PlainError }
);

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A thread with its own connection, for slow work: lists, exports, CRL entries, search indexes and checkpoints. The
 * first call starts it, and so does the next call after it has ended.
 */
export class ReadingThread {
  readonly #path: string;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #lastId = 0;
  #isClosed = false;

  constructor(path: string) {
    this.#path = path;
  }

  call<Result>(operation: string, args: readonly never[]): Promise<Result> {
    if (this.#isClosed) return Promise.reject(unavailable('STORE_UNAVAILABLE', 'the store is closed'));
    if (this.#waiting.size >= MAX_WAITING)
      return Promise.reject(unavailable('STORE_UNAVAILABLE', 'the store is overloaded', { retryAfter: 1 }));
    const id = ++this.#lastId;
    return measured(
      { dependency: 'store_read' },
      () =>
        new Promise<Result>((resolve, reject) => {
          this.#waiting.set(id, { resolve, reject });
          this.#worker ??= this.#start();
          this.#worker.postMessage({ id, operation, args } satisfies Request);
        }),
      isAnswer,
    );
  }

  /** Waits for calls in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    await new Promise((resolve) => {
      worker.once('exit', resolve);
      worker.postMessage(undefined);
    });
  }

  #start(): Worker {
    const options = { workerData: { path: this.#path }, name: 'estuary-store' };
    const worker = new Worker(startedModule('store/sqlite/thread'), options);
    let reason = 'the reading thread ended';
    worker.on('message', (response: Response) => {
      const waiting = this.#waiting.get(response.id);
      this.#waiting.delete(response.id);
      if (response.error === undefined) waiting?.resolve(withBuffers(response.value) as never);
      else waiting?.reject(fromPlainError(response.error));
    });
    worker.on('error', (error: unknown) => (reason = describe(error)));
    worker.on('exit', () => {
      this.#worker = undefined;
      for (const { reject } of this.#waiting.values()) reject(new StoreLost(reason));
      this.#waiting.clear();
    });
    return worker;
  }
}

/** Restores Buffers: a BLOB arrives as a Uint8Array. */
function withBuffers(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value !== 'object' || value === null) return value;
  for (const [key, member] of Object.entries(value))
    if (typeof member === 'object') Reflect.set(value, key, withBuffers(member));
  return value;
}
