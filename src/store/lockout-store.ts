import type { AuditEvent } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';

export interface LockoutPolicy {
  readonly max_failures: number;
  /** Seconds. */
  readonly failure_window: number;
  /** Seconds. */
  readonly lockout_duration: number;
}

export interface LockoutRow {
  readonly key: string;
  readonly scope: 'address' | 'username' | 'identification';
  readonly failures: number;
  readonly locked_until: number;
}

/**
 * Failed passwords, and who is locked out over them. Keys are `address:…` / `username:…` / `identification:…`. Only what
 * comes of a use of a password clears counts: `succeeded` of the calls that issue or queue names the keys of that
 * password's sender. A lockout in force stays.
 */
export interface LockoutStore {
  /** The latest end of a lockout in force for any of the keys. */
  lockedUntil(keys: readonly string[], now: number): Promise<number | undefined>;
  /**
   * Counts one failure on each key; more than `max_failures` within the window starts a lockout (and audits
   * `lockout.started`). A key that is locked out already is not counted; `events` are committed all the same.
   */
  recordFailure(
    keys: readonly string[],
    policy: LockoutPolicy,
    now: number,
    events: readonly AuditEvent[],
  ): Promise<void>;
  /** Those that end first, first. */
  listLockouts(page: PageRequest, now: number): Promise<Page<LockoutRow>>;
  deleteLockout(key: string, events: readonly AuditEvent[]): Promise<boolean>;
}
