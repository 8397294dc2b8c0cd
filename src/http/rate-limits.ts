/** Limits requests per second on one listener of one process, per address and in total. */

import type { Config } from '../config/schema.ts';

export interface RequestRates {
  /** Requests per second; undefined: unlimited. */
  readonly perAddress: number | undefined;
  readonly total: number | undefined;
}

export const requestRates = (limits: Config['limits']): RequestRates => ({
  perAddress: limits.requests_per_second_per_address,
  total: limits.requests_per_second,
});

/** A bucket holds two seconds of its rate: the maximum burst. */
const BURST = 2;
/** Remembered addresses; the least recently seen is dropped. */
const MAX_ADDRESSES = 10_000;

interface Bucket {
  tokens: number;
  /** Milliseconds. */
  at: number;
}

export class RateLimits {
  readonly #rates: RequestRates;
  readonly #now: () => number;
  /** Least recently seen first. */
  readonly #addresses = new Map<string, Bucket>();
  #all: Bucket | undefined;

  /** @param now milliseconds of a monotonic clock */
  constructor(rates: RequestRates, now: () => number = () => performance.now()) {
    this.#rates = rates;
    this.#now = now;
  }

  /**
   * Counts a request of an address.
   * @returns undefined if it is accepted, otherwise the whole seconds until the next may be
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
