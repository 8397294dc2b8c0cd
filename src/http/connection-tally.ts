import { isObject } from '../process/protocol.ts';

/** Which connections a listener has, from which addresses, and which of them makes room for another address. */

/** `server.max_connections` and `server.max_connections_per_address`. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perAddress: number;
}

/** The keys of the limits in `[server]`. */
export type ReachedLimit = 'max_connections' | 'max_connections_per_address';

/** An address has few connections below this part of all. */
const FEW = 1 / 64;

export class ConnectionTally<C> {
  readonly #limits: ConnectionLimits;
  /** The connections of each address, the oldest first. */
  readonly #byAddress = new Map<string, Set<C>>();
  /** The addresses with so many connections. */
  readonly #bySize = new Map<number, Set<string>>();
  #largest = 0;
  #total = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** The limit that one more connection of an address would exceed. */
  reached(address: string): ReachedLimit | undefined {
    if (this.#countOf(address) >= this.#limits.perAddress) return 'max_connections_per_address';
    return this.#total >= this.#limits.total ? 'max_connections' : undefined;
  }

  add(address: string, connection: C): void {
    const connections = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, connections);
    this.#resize(address, connections.size, connections.add(connection).size);
    this.#total += 1;
  }

  /** A connection that was removed already changes nothing. */
  remove(address: string, connection: C): void {
    const connections = this.#byAddress.get(address);
    if (connections?.delete(connection) !== true) return;
    this.#resize(address, connections.size + 1, connections.size);
    this.#total -= 1;
    if (connections.size === 0) this.#byAddress.delete(address);
  }

  /**
   * The connection that makes room for an address with few connections: the oldest that may be closed, of the address with the
   * most. An address that has hardly more than the other one keeps its connections.
   *
   * @param mayClose tried one after the other: what the first allows goes before what the next allows
   */
  displaced(address: string, ...mayClose: readonly ((connection: C) => boolean)[]): C | undefined {
    const own = this.#countOf(address);
    if (own >= Math.floor(this.#limits.total * FEW)) return undefined;
    for (let size = this.#largest; size > own + 1; size--)
      for (const other of this.#bySize.get(size) ?? [])
        for (const may of mayClose)
          for (const connection of this.#byAddress.get(other) ?? []) if (may(connection)) return connection;
    return undefined;
  }

  #countOf(address: string): number {
    return this.#byAddress.get(address)?.size ?? 0;
  }

  #resize(address: string, from: number, to: number): void {
    const former = this.#bySize.get(from);
    former?.delete(address);
    if (former?.size === 0) this.#bySize.delete(from);
    if (to > 0) this.#bySize.set(to, (this.#bySize.get(to) ?? new Set()).add(address));
    // One more or one less at a time.
    if (to > this.#largest || !this.#bySize.has(this.#largest)) this.#largest = to;
  }
}

/** Files that a process needs beside its connections: store, logs, modules, child processes, connections to CAs. */
const OTHER_FILES = 128;

/** `ulimit -n`, which Node raises to the hard limit when it starts; undefined where it is unlimited or not to be had. */
export function openFileLimit(): number | undefined {
  // Otherwise every network interface is looked at, too.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  const soft = member(member(member(report, 'userLimits'), 'open_files'), 'soft');
  return typeof soft === 'number' ? soft : undefined;
}

const member = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);

/**
 * What of the configured limits fits into the limit of open files: a process without a file left could not even write
 * its records.
 *
 * @param listeners how many listeners have these limits each
 */
export function affordable(
  { total, perAddress }: ConnectionLimits,
  listeners: number,
  openFiles: number | undefined,
): ConnectionLimits {
  if (openFiles === undefined) return { total, perAddress };
  const each = Math.max(1, Math.floor((openFiles - OTHER_FILES) / listeners));
  return { total: Math.min(total, each), perAddress: Math.min(perAddress, each) };
}
