/** How many connections a listener has, in all and from each address, against how many it may have. */

/** `server.max_connections` and `server.max_connections_per_address`. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perAddress: number;
}

/** The keys of the limits in `[server]`. */
export type ReachedLimit = 'max_connections' | 'max_connections_per_address';

export class ConnectionTally {
  readonly #limits: ConnectionLimits;
  readonly #byAddress = new Map<string, number>();
  #total = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Counts one more, unless that would be one too many; then it says which limit it is. */
  add(address: string): ReachedLimit | undefined {
    const count = this.#byAddress.get(address) ?? 0;
    if (this.#total >= this.#limits.total) return 'max_connections';
    if (count >= this.#limits.perAddress) return 'max_connections_per_address';
    this.#total += 1;
    this.#byAddress.set(address, count + 1);
    return undefined;
  }

  /** Takes back one that was counted. */
  remove(address: string): void {
    const count = this.#byAddress.get(address);
    if (count === undefined) return;
    this.#total -= 1;
    if (count > 1) this.#byAddress.set(address, count - 1);
    else this.#byAddress.delete(address);
  }
}
