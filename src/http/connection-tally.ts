import { isObject } from '../process/protocol.ts';

/** Counts a listener's connections per address, and selects one to close in favor of another address. */

/** `server.max_connections` and `server.max_connections_per_address`. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perAddress: number;
}

export type ReachedLimit = 'max_connections' | 'max_connections_per_address';

/** Below this fraction of all connections, an address has few. */
const FEW = 1 / 64;

export class ConnectionTally<C> {
  readonly #limits: ConnectionLimits;
  /** Connections per address, oldest first. */
  readonly #byAddress = new Map<string, Set<C>>();
  /** Addresses by number of connections. */
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

  /** Idempotent. */
  remove(address: string, connection: C): void {
    const connections = this.#byAddress.get(address);
    if (connections?.delete(connection) !== true) return;
    this.#resize(address, connections.size + 1, connections.size);
    this.#total -= 1;
    if (connections.size === 0) this.#byAddress.delete(address);
  }

  /**
   * Selects a connection to close for an address with few: the oldest closable one of the address with the most. An
   * address with hardly more than the other keeps its connections.
   * @param mayClose in order of preference
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
    // Changes by one at a time.
    if (to > this.#largest || !this.#bySize.has(this.#largest)) this.#largest = to;
  }
}

/**
 * Files that a process needs in addition to client connections: store, logs, modules, child processes, connections to
 * CAs.
 */
const OTHER_FILES = 128;

/** `ulimit -n`, which Node raises to the hard limit at start; undefined if unlimited or unknown. */
export function openFileLimit(): number | undefined {
  // Otherwise the report reads every network interface.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  const soft = member(member(member(report, 'userLimits'), 'open_files'), 'soft');
  return typeof soft === 'number' ? soft : undefined;
}

const member = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);

/**
 * Reduces the configured limits to the limit of open files: without a free file, a process could not even write its
 * records.
 * @param listeners that each have these limits
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
