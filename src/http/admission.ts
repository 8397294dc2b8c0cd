/** Refuses what a listener cannot take, before anything is done for it: 503 with Retry-After (contract §11). */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { lockoutAddress } from '../auth/client-address.ts';
import { unavailable, type EstuaryError } from '../errors.ts';
import { inTurn } from '../process/turns.ts';
import { exchangeOf } from './exchange.ts';
import { RateLimits, type RequestRates } from './rate-limits.ts';

/** Answers in the listener's form. */
export type Refuse = (response: ServerResponse, error: EstuaryError) => void;

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
    else refuse(response, unavailable('RATE_LIMITED', 'Too many requests, try again later.', { retryAfter }));
  });
}

/** Connections whose requests one process carries out at a time; beyond, a queue would only grow, and with it the time of all. */
const MAX_IN_HAND = 256;

/**
 * Bounds what is carried out at a time. What a client is still sending does not count: slow ones hold up nobody. A connection counts
 * once, however many requests it sends without waiting: nobody takes the places of others with one.
 * What comes together is begun over several turns of the event loop.
 */
export class InHand {
  /** The requests of each. */
  readonly #connections = new Map<object, number>();

  /** @throws EstuaryError 503 `OVERLOADED` */
  async run<T>(connection: object, work: () => Promise<T>): Promise<T> {
    const others = this.#connections.get(connection) ?? 0;
    if (others === 0 && this.#connections.size >= MAX_IN_HAND)
      throw unavailable('OVERLOADED', 'The server has too many requests in hand, try again later.');
    this.#connections.set(connection, others + 1);
    try {
      await new Promise<void>(inTurn);
      return await work();
    } finally {
      this.#leave(connection);
    }
  }

  #leave(connection: object): void {
    const left = (this.#connections.get(connection) ?? 0) - 1;
    if (left > 0) this.#connections.set(connection, left);
    else this.#connections.delete(connection);
  }
}
