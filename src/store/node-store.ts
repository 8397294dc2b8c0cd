/** A server on a shared store. */
export interface NodeRow {
  readonly name: string;
  /** Host name of its machine. */
  readonly host: string;
  /** Milliseconds since its last heartbeat, by the store's clock. */
  readonly age: number;
  /** Whether the other nodes consider it alive. */
  readonly alive: boolean;
  /** Whether it performs the tasks of a single node. */
  readonly on_duty: boolean;
}

/** Milliseconds of clock difference between a node and the database before a warning, and before it is not ready. */
export const CLOCK_TOLERANCE = { warning: 5000, notReady: 60_000 } as const;

export interface NodeStore {
  /** By name; empty for a store that is not shared. */
  listNodes(): Promise<readonly NodeRow[]>;
}
