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
 * Failed passwords and lockouts. Keys are `address:…` / `username:…` / `identification:…`. Only the effect of a valid
 * password clears counts: `succeeded` of the calls that issue or queue names the keys of its sender. A lockout in force
 * stays.
 */
export interface LockoutStore {
  /** The latest end of the lockouts in force for these keys. */
  lockedUntil(keys: readonly string[], now: number): Promise<number | undefined>;
  /**
   * Counts one failure on each key; more than `max_failures` within the window start a lockout (audited as
   * `lockout.started`). A locked key is not counted; `events` are committed in any case.
   */
  recordFailure(
    keys: readonly string[],
    policy: LockoutPolicy,
    now: number,
    events: readonly AuditEvent[],
  ): Promise<void>;
  /** In order of their end. */
  listLockouts(page: PageRequest, now: number): Promise<Page<LockoutRow>>;
  deleteLockout(key: string, events: readonly AuditEvent[]): Promise<boolean>;
}
