/** Rejects requests over the limits before any work: 503 with Retry-After. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { lockoutAddress } from '../auth/identity.ts';
import type { Config } from '../config/schema.ts';
import { unavailable } from '../errors.ts';
import { inTurn } from '../process/turns.ts';
import { exchangeOf } from './exchange.ts';
import type { Refuse } from './request-head.ts';

/** Checks before the server's other `request` listeners; call it after those exist. */
export function limitRequests(server: Server, rates: Config['limits'], refuse: Refuse): void {
  if (rates.requests_per_second_per_address === undefined && rates.requests_per_second === undefined) return;
  const limits = new RateLimits(rates);
  const listeners = server.listeners('request');
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const retryAfter = limits.take(lockoutAddress(exchangeOf(request).address));
    if (retryAfter === undefined)
      for (const listener of listeners) Reflect.apply(listener, server, [request, response]);
    else refuse(response, unavailable('RATE_LIMITED', 'Too many requests. Try again later.', { retryAfter }));
  });
}

/** A bucket holds two seconds of its rate: the maximum burst. */
const BURST = 2;
/** Remembered addresses; the least recently seen is dropped. */
const MAX_ADDRESSES = 10_000;

interface Bucket {
  tokens: number;
  /** Milliseconds. */
  at: number;
}

/** Limits requests per second on one listener of one process, per address and in total. */
export class RateLimits {
  readonly #rates: Config['limits'];
  readonly #now: () => number;
  /** Least recently seen first. */
  readonly #addresses = new Map<string, Bucket>();
  #all: Bucket | undefined;

  /** @param now milliseconds of a monotonic clock */
  constructor(rates: Config['limits'], now: () => number = () => performance.now()) {
    this.#rates = rates;
    this.#now = now;
  }

  /**
   * Counts a request of an address.
   * @returns undefined if it is accepted, otherwise the whole seconds until the next may be
   */
  take(address: string): number | undefined {
    const { requests_per_second_per_address: perAddress, requests_per_second: total } = this.#rates;
    if (perAddress !== undefined) {
      const wait = this.#takeFrom(this.#bucketOf(address, perAddress), perAddress);
      if (wait !== undefined) return wait;
    }
    if (total === undefined) return undefined;
    this.#all ??= this.#full(total);
    return this.#takeFrom(this.#all, total);
  }

  #takeFrom(bucket: Bucket, rate: number): number | undefined {
    const now = this.#now();
    bucket.tokens = Math.min(rate * BURST, bucket.tokens + ((now - bucket.at) / 1000) * rate);
    bucket.at = now;
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / rate));
    bucket.tokens -= 1;
    return undefined;
  }

  #bucketOf(address: string, rate: number): Bucket {
    const bucket = this.#addresses.get(address) ?? this.#full(rate);
    this.#addresses.delete(address);
    this.#addresses.set(address, bucket);
    const [oldest] = this.#addresses.keys();
    if (this.#addresses.size > MAX_ADDRESSES && oldest !== undefined) this.#addresses.delete(oldest);
    return bucket;
  }

  #full(rate: number): Bucket {
    return { tokens: rate * BURST, at: this.#now() };
  }
}

/** Connections with requests in progress; beyond that, only the queue and the delay would grow. */
const MAX_IN_HAND = 256;
/** Places reserved for addresses with few. */
const RESERVED = 64;
const FEW = 16;

/**
 * Limits requests in progress, in total and per address. Requests that are still arriving do not count: slow clients
 * delay nobody. A connection counts once, however many requests it pipelines. Bursts are spread over several event-loop
 * iterations.
 */
export class ActiveRequests {
  /** Requests per connection. */
  readonly #connections = new Map<object, number>();
  /** Connections per address. */
  readonly #addresses = new Map<string, number>();

  /** @throws EstuaryError 503 `OVERLOADED` */
  async run<T>(connection: object, clientAddress: string, work: () => Promise<T>): Promise<T> {
    const address = lockoutAddress(clientAddress);
    const free = MAX_IN_HAND - this.#connections.size;
    const needed = (this.#addresses.get(address) ?? 0) < FEW ? 1 : RESERVED + 1;
    if (!this.#connections.has(connection) && free < needed)
      throw unavailable('OVERLOADED', 'The server is overloaded. Try again later.');
    if (count(this.#connections, connection, 1) === 1) count(this.#addresses, address, 1);
    try {
      await new Promise<void>(inTurn);
      return await work();
    } finally {
      if (count(this.#connections, connection, -1) === 0) count(this.#addresses, address, -1);
    }
  }
}

function count<K>(numbers: Map<K, number>, key: K, change: number): number {
  const number = (numbers.get(key) ?? 0) + change;
  if (number > 0) numbers.set(key, number);
  else numbers.delete(key);
  return number;
}

/** Tracks requests in progress on all listeners: replaced CAs may be closed once no request uses them. */

/** Requests between two calls of {@link OpenRequests.endOfThese}. */
interface Generation {
  open: number;
  /** Called when the last one ends and no more can join. */
  ended: (() => void) | undefined;
}

export class OpenRequests {
  #current: Generation = { open: 0, ended: undefined };
  #before: Promise<unknown> = Promise.resolve();

  /** Tracks every request of a server. */
  follow(server: Server): void {
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      const generation = this.#current;
      generation.open++;
      const end = (): void => {
        generation.open--;
        if (generation.open === 0) generation.ended?.();
      };
      response.once('close', () => {
        // The operation may continue after the client is gone.
        const { atWork } = exchangeOf(request);
        if (atWork === undefined) end();
        else void atWork.then(end);
      });
    });
  }

  /** Resolves once every request so far has been answered, or abandoned and its operation is complete. */
  endOfThese(): Promise<unknown> {
    const these = this.#current;
    this.#current = { open: 0, ended: undefined };
    const end = these.open === 0 ? undefined : new Promise<void>((resolve) => (these.ended = resolve));
    this.#before = Promise.all([this.#before, end]);
    return this.#before;
  }
}
