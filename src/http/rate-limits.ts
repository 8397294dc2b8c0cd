/** How many requests a second one listener of one process takes: from one address, and in all. */

import type { Config } from '../config/schema.ts';

export interface RequestRates {
  /** Requests a second; undefined: unlimited. */
  readonly perAddress: number | undefined;
  readonly total: number | undefined;
}

/** `[limits]`. */
export const requestRates = (limits: Config['limits']): RequestRates => ({
  perAddress: limits.requests_per_second_per_address,
  total: limits.requests_per_second,
});

/** A bucket holds twice what runs into it in a second: so long may a burst be. */
const BURST = 2;
/** Addresses that are remembered; beyond, the one that was seen longest ago is forgotten. */
const MAX_ADDRESSES = 10_000;

interface Bucket {
  tokens: number;
  /** Milliseconds. */
  at: number;
}

export class RateLimits {
  readonly #rates: RequestRates;
  readonly #now: () => number;
  /** The one seen longest ago first. */
  readonly #addresses = new Map<string, Bucket>();
  #all: Bucket | undefined;

  /** @param now milliseconds of a clock that only goes on */
  constructor(rates: RequestRates, now: () => number = () => performance.now()) {
    this.#rates = rates;
    this.#now = now;
  }

  /**
   * Takes one request from an address.
   *
   * @returns undefined when it may come in, else the whole seconds after which the next one may
   */
  take(address: string): number | undefined {
    const { perAddress, total } = this.#rates;
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
