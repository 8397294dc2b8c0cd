import { inStatus } from '../request-state.ts';
import type { Waiting } from '../store.ts';
import type { Queries } from './queries.ts';

/** The read of what waits for somebody. */
export function waitingReads(db: Queries) {
  const pending = db.prepare<[], { ca: string; count: number }>(
    `SELECT ca, count(*) AS count FROM request WHERE ${inStatus(['pending'])} GROUP BY ca ORDER BY ca`,
  );
  const lockouts = db.prepare<[number], { n: number }>('SELECT count(*) AS n FROM lockout WHERE locked_until > ?');
  return {
    async countWaiting(now: number): Promise<Waiting> {
      const [waiting, locked] = await Promise.all([pending.all(), lockouts.get(now)]);
      return { pending: waiting, lockouts: locked?.n ?? 0 };
    },
  };
}
