/** What the checks across keys find. */
import type { Problem, Warning } from '../problem.ts';

/** A problem that several keys make together; it is dropped when one of them is wrong by itself. */
export interface Finding extends Problem {
  /** The other keys it depends on. */
  readonly about?: readonly string[];
}

export interface CrossChecks {
  readonly problems: readonly Finding[];
  readonly warnings: readonly Warning[];
}
