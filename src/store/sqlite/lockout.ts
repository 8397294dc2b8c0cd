import type { AuditEvent } from '../../audit/event.ts';
import type { LockoutPolicy, LockoutRow } from '../lockout-store.ts';
import { type Page, type PageRequest } from '../page.ts';
import {
  type ListedLockout,
  lockoutPage,
  type LockoutPlace,
  lockoutStarted,
  readPlace,
  requestOf,
} from '../rows/lockout.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';

/** The reads of lockouts. */
export function lockoutReads(db: Db) {
  const byKey = db.prepare<[string, number], { locked_until: number }>(
    'SELECT locked_until FROM lockout WHERE key = ? AND locked_until > ?',
  );
  const pages = {
    asc: db.prepare<LockoutPlace, ListedLockout>(
      `SELECT key, failures, locked_until FROM lockout INDEXED BY lockout_by_end
       WHERE locked_until > @now AND (locked_until, key) > (@end, @key) ORDER BY locked_until, key LIMIT @take`,
    ),
    desc: db.prepare<LockoutPlace, ListedLockout>(
      `SELECT key, failures, locked_until FROM lockout INDEXED BY lockout_by_end
       WHERE locked_until > @now AND (locked_until, key) < (@end, @key) ORDER BY locked_until DESC, key DESC LIMIT @take`,
    ),
  };
  return {
    lockedUntil(keys: readonly string[], now: number): number | undefined {
      const ends = keys.flatMap((key) => byKey.get(key, now)?.locked_until ?? []);
      return ends.length === 0 ? undefined : Math.max(...ends);
    },
    listLockouts(request: PageRequest, now: number): Page<LockoutRow> {
      const { order = 'asc', limit } = request;
      const rows = pages[order].all({ now, ...readPlace(request), take: limit + 1 });
      return lockoutPage(rows, limit);
    },
  };
}

/** Forgets the failures counted on some keys: part of every way in which a use of a password comes to something. */
export function clearFailures(db: Db): (keys: readonly string[]) => void {
  const clear = db.prepare<[string]>('DELETE FROM failure WHERE key = ?');
  return (keys) => {
    for (const key of keys) clear.run(key);
  };
}

/** The writes of lockouts: a sliding window of failure times per key, and the lockouts that came of them. */
export function lockoutWrites(db: Db) {
  const locked = db.prepare<[string, number], { key: string }>(
    'SELECT key FROM lockout WHERE key = ? AND locked_until > ?',
  );
  const addFailure = db.prepare<[string, number]>('INSERT INTO failure (key, at) VALUES (?, ?)');
  const count = db.prepare<[string, number], { n: number }>(
    'SELECT count(*) AS n FROM failure WHERE key = ? AND at > ?',
  );
  const clear = db.prepare<[string]>('DELETE FROM failure WHERE key = ?');
  const start = db.prepare<[string, number, number]>(
    'INSERT OR REPLACE INTO lockout (key, failures, locked_until) VALUES (?, ?, ?)',
  );
  const end = db.prepare<[string]>('DELETE FROM lockout WHERE key = ?');
  const forgetFailures = db.prepare<[number]>('DELETE FROM failure WHERE at <= ?');
  const forgetLockouts = db.prepare<[number]>('DELETE FROM lockout WHERE locked_until <= ?');

  function countFailure(
    key: string,
    policy: LockoutPolicy,
    now: number,
    request: Pick<AuditEvent, 'request_id'>,
  ): AuditEvent[] {
    if (locked.get(key, now) !== undefined) return [];
    addFailure.run(key, now);
    const failures = count.get(key, now - policy.failure_window * 1000)?.n ?? 0;
    if (failures <= policy.max_failures) return [];
    start.run(key, failures, now + policy.lockout_duration * 1000);
    clear.run(key);
    return [lockoutStarted(key, failures, policy, request)];
  }

  return {
    recordFailure(
      keys: readonly string[],
      policy: LockoutPolicy,
      now: number,
      events: readonly AuditEvent[],
    ): Outcome<undefined> {
      // What no longer counts goes first, so that a flood from many addresses cannot fill the disk.
      forgetFailures.run(now - policy.failure_window * 1000);
      forgetLockouts.run(now);
      const request = requestOf(events);
      const started = keys.flatMap((key) => countFailure(key, policy, now, request));
      return done(undefined, [...events, ...started]);
    },
    deleteLockout(key: string, events: readonly AuditEvent[]): Outcome<boolean> {
      clear.run(key);
      return end.run(key).changes === 1 ? done(true, events) : undone(false);
    },
  };
}
