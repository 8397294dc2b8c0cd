/** Numbers, and what is drawn with them, that come again with their seed. */

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 up to, not including, 2^32 (mulberry32). */
  uint32(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    return this.uint32() / 2 ** 32;
  }

  /** A whole number from `from` up to, not including, `to`. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from));
  }

  /** One of them. */
  pick<T>(items: readonly T[]): T | undefined {
    return items[this.between(0, items.length)];
  }

  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, at: this.next() }))
      .sort((a, b) => a.at - b.at)
      .map(({ item }) => item);
  }
}
