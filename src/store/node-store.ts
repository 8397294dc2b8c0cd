/** A server on a store that several share. */
export interface NodeRow {
  /** `store.node_name`. */
  readonly name: string;
  /** The machine it runs on, as that calls itself. */
  readonly host: string;
  /** Milliseconds since it last said that it lives, by the store's clock. */
  readonly age: number;
  /** Whether the others take it for alive. */
  readonly alive: boolean;
  /** Whether it is the one that does what one of them does for all. */
  readonly on_duty: boolean;
}

/** Milliseconds by which the clocks of a node and of the database may differ before the node warns, and before it is not ready. */
export const CLOCK_TOLERANCE = { warning: 5000, notReady: 60_000 } as const;

/** Who is on the store. */
export interface NodeStore {
  /** By their names; none: it is not one that servers share. */
  listNodes(): Promise<readonly NodeRow[]>;
}
