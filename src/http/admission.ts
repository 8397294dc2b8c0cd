/** Refuses what a listener cannot take, before anything is done for it: 503 with Retry-After (contract §11). */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { lockoutAddress } from '../auth/client-address.ts';
import { unavailable, type EstuaryError } from '../errors.ts';
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

/** Requests that one process carries out at a time; beyond, a queue would only grow, and with it the time of all. */
const MAX_IN_HAND = 256;

/** Bounds what is carried out at a time. What a client is still sending does not count: slow ones hold up nobody. */
export class InHand {
  #count = 0;

  /** @throws EstuaryError 503 `OVERLOADED` */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#count >= MAX_IN_HAND)
      throw unavailable('OVERLOADED', 'The server has too many requests in hand, try again later.');
    this.#count++;
    try {
      return await work();
    } finally {
      this.#count--;
    }
  }
}
