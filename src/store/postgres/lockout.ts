import type { AuditEvent } from '../../audit/event.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { LockoutPolicy, LockoutRow } from '../lockout-store.ts';
import type { Page, PageRequest } from '../page.ts';
import {
  type ListedLockout,
  lockoutPage,
  type LockoutPlace,
  lockoutStarted,
  readPlace,
  requestOf,
} from '../rows/lockout.ts';
import type { Queries } from './queries.ts';

/** Rows that are forgotten at once: what no longer counts goes a little faster than it can come. */
const FORGOTTEN_AT_ONCE = 100;

/** The reads of lockouts. */
export function lockoutReads(db: Queries) {
  const latest = db.prepare<[readonly string[], number], { end: number | null }>(
    'SELECT max(locked_until) AS end FROM lockout WHERE key = ANY(?) AND locked_until > ?',
  );
  const page = (order: 'asc' | 'desc') =>
    db.prepare<LockoutPlace, ListedLockout>(
      `SELECT key, failures, locked_until FROM lockout WHERE locked_until > @now
       AND (locked_until, key) ${order === 'asc' ? '>' : '<'} (@end, @key) ORDER BY locked_until ${order}, key ${order} LIMIT @take`,
    );
  const pages = { asc: page('asc'), desc: page('desc') };
  return {
    async lockedUntil(keys: readonly string[], now: number): Promise<number | undefined> {
      return (await latest.get(keys, now))?.end ?? undefined;
    },
    async listLockouts(request: PageRequest, now: number): Promise<Page<LockoutRow>> {
      const { order = 'asc', limit } = request;
      return lockoutPage(await pages[order].all({ now, ...readPlace(request), take: limit + 1 }), limit);
    },
  };
}

/** Forgets the failures counted on some keys: part of every way in which a use of a password comes to something. */
export function clearFailures(db: Queries): (keys: readonly string[]) => Promise<unknown> {
  const clear = db.prepare<[readonly string[]]>('DELETE FROM failure WHERE key = ANY(?)');
  return async (keys) => (keys.length === 0 ? undefined : clear.run(keys));
}

/** The writes of lockouts: a sliding window of failure times per key, and the lockouts that came of them. */
export function lockoutWrites(db: Queries) {
  const locked = db.prepare<[string, number], { key: string }>(
    'SELECT key FROM lockout WHERE key = ? AND locked_until > ?',
  );
  const addFailure = db.prepare<[string, number]>('INSERT INTO failure (key, at) VALUES (?, ?)');
  const count = db.prepare<[string, number], { n: number }>(
    'SELECT count(*) AS n FROM failure WHERE key = ? AND at > ?',
  );
  const clear = clearFailures(db);
  const start = db.prepare<[string, number, number]>(
    `INSERT INTO lockout (key, failures, locked_until) VALUES (?, ?, ?)
     ON CONFLICT (key) DO UPDATE SET failures = excluded.failures, locked_until = excluded.locked_until`,
  );
  const end = db.prepare<[string]>('DELETE FROM lockout WHERE key = ?');
  // Those that another transaction is about to forget, or counts with, it leaves alone.
  const forget = (table: string, column: string) =>
    db.prepare<[number]>(
      `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE ${column} <= ?
       LIMIT ${FORGOTTEN_AT_ONCE} FOR UPDATE SKIP LOCKED))`,
    );
  const forgetFailures = forget('failure', 'at');
  const forgetLockouts = forget('lockout', 'locked_until');

  async function countFailure(
    key: string,
    policy: LockoutPolicy,
    now: number,
    request: Pick<AuditEvent, 'request_id'>,
  ): Promise<readonly AuditEvent[]> {
    if ((await locked.get(key, now)) !== undefined) return [];
    const [, counted] = await Promise.all([
      addFailure.run(key, now),
      count.get(key, now - policy.failure_window * 1000),
    ]);
    const failures = counted?.n ?? 0;
    if (failures <= policy.max_failures) return [];
    await Promise.all([start.run(key, failures, now + policy.lockout_duration * 1000), clear([key])]);
    return [lockoutStarted(key, failures, policy, request)];
  }

  return {
    async recordFailure(
      keys: readonly string[],
      policy: LockoutPolicy,
      now: number,
      events: readonly AuditEvent[],
    ): Promise<Outcome<undefined>> {
      // What no longer counts goes first, so that a flood from many addresses cannot fill the disk.
      const [started] = await Promise.all([
        Promise.all(keys.map((key) => countFailure(key, policy, now, requestOf(events)))),
        forgetFailures.run(now - policy.failure_window * 1000),
        forgetLockouts.run(now),
      ]);
      return done(undefined, [...events, ...started.flat()]);
    },
    async deleteLockout(key: string, events: readonly AuditEvent[]): Promise<Outcome<boolean>> {
      await clear([key]);
      return (await end.run(key)) === 1 ? done(true, events) : undone(false);
    },
  };
}
