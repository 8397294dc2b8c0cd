import { initial } from './0001-initial.ts';

export interface Migration {
  readonly sql: string;
  /** The oldest version of the schema that a program may know to go on working after it: what only adds leaves the versions before at work. */
  readonly serves: number;
}

/**
 * In order; the n-th (from 1) takes a database to version n. Never change one that was released.
 *
 * Nodes of the version before work on beside it, so one that expands only adds, keeps what it doubles in step by triggers, and holds no
 * table for longer than a second (docs/postgresql.md); what takes away `serves` from a version on that no longer uses it.
 */
export const MIGRATIONS: readonly Migration[] = [{ sql: initial, serves: 1 }];
