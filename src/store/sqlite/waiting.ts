import { inStatus } from '../request-state.ts';
import type { Waiting } from '../store.ts';
import type { Db } from './database.ts';

/** The read of what waits for somebody. */
export function waitingReads(db: Db) {
  const pending = db.prepare<[], { ca: string; count: number }>(
    `SELECT ca, count(*) AS count FROM request WHERE ${inStatus(['pending'])} GROUP BY ca ORDER BY ca`,
  );
  const lockouts = db.prepare<[number], { n: number }>('SELECT count(*) AS n FROM lockout WHERE locked_until > ?');
  return {
    countWaiting: (now: number): Waiting => ({ pending: pending.all(), lockouts: lockouts.get(now)?.n ?? 0 }),
  };
}
