/** Refuses what a listener cannot take, before anything is done for it: 503 with Retry-After. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { lockoutAddress } from '../auth/identity.ts';
import { type EstuaryError, unavailable } from '../errors.ts';
import { inTurn } from '../process/turns.ts';
import { exchangeOf } from './exchange.ts';
import { RateLimits, type RequestRates } from './rate-limits.ts';

/** Answers in the listener's form. */
type Refuse = (response: ServerResponse, error: EstuaryError) => void;

/** Steps in before whatever answers the server's requests; to be called after that is there. */
export function limitRequests(server: Server, rates: RequestRates, refuse: Refuse): void {
  if (rates.perAddress === undefined && rates.total === undefined) return;
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

/** Connections whose requests are carried out at once; beyond that, a queue would only grow, and with it the delay of all. */
const MAX_IN_HAND = 256;
/** Places among them for addresses that have few. */
const RESERVED = 64;
const FEW = 16;

/**
 * Bounds what is carried out at once, and what one address may have of it. What a client is still sending does not count: slow
 * clients delay nobody. A connection counts once, however many requests it sends without waiting for the responses.
 * Bursts are spread over several event-loop iterations.
 */
export class InHand {
  /** The requests of each connection. */
  readonly #connections = new Map<object, number>();
  /** The connections of each address. */
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

/** Adds to the number of a key, and forgets a key without any. */
function count<K>(numbers: Map<K, number>, key: K, change: number): number {
  const number = (numbers.get(key) ?? 0) + change;
  if (number > 0) numbers.set(key, number);
  else numbers.delete(key);
  return number;
}

/** Which requests are at work, on all listeners of a process: what a reload has replaced may be closed once none of them uses it. */

/** Those that came between two calls of {@link OpenRequests.endOfThese}. */
interface Generation {
  open: number;
  /** Called at the end of the last one, where nobody comes to them any more. */
  ended: (() => void) | undefined;
}

export class OpenRequests {
  #current: Generation = { open: 0, ended: undefined };
  #before: Promise<unknown> = Promise.resolve();

  /** Follows every request of a server. */
  follow(server: Server): void {
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      const generation = this.#current;
      generation.open++;
      const end = (): void => {
        generation.open--;
        if (generation.open === 0) generation.ended?.();
      };
      response.once('close', () => {
        // What was asked for may go on without the one who asked.
        const { atWork } = exchangeOf(request);
        if (atWork === undefined) end();
        else void atWork.then(end);
      });
    });
  }

  /** Resolves once every request that has come by now is answered, or given up and what it asked for is done. */
  endOfThese(): Promise<unknown> {
    const these = this.#current;
    this.#current = { open: 0, ended: undefined };
    const end = these.open === 0 ? undefined : new Promise<void>((resolve) => (these.ended = resolve));
    this.#before = Promise.all([this.#before, end]);
    return this.#before;
  }
}
