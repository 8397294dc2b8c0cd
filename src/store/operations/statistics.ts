/** What is counted: events by the hour, certificates by their expiry date, and what waits for somebody. */
import { inStatus } from '../request-state.ts';
import { type Count, STATISTICS_HOUR, type StatisticsFilter } from '../statistics-store.ts';
import type { Waiting } from '../store.ts';
import type { Database, Operation } from './port.ts';

interface Hours {
  readonly from: number;
  readonly to: number;
  /** Length of an interval. */
  readonly hours: number;
  readonly ca: string | null;
}

export function statisticsReads(db: Database) {
  // SQLite binds numbers as floating-point values, which do not divide to whole hours.
  const hours = 'CAST(@hours AS bigint)';
  const counts = db.prepare<Hours, Count>(
    `SELECT hour / ${hours} * ${hours} * ${STATISTICS_HOUR} AS time, what, CAST(sum(count) AS bigint) AS count FROM statistic
     WHERE hour >= @from AND hour < @to AND (CAST(@ca AS text) IS NULL OR ca = @ca) GROUP BY 1, 2 ORDER BY 1, 2`,
  );
  const ending = db.prepare<[number, number], { n: number }>(
    `SELECT count(*) AS n FROM certificate ${db.dialect.indexedBy('certificate_by_end')}
     WHERE not_after >= ? AND not_after < ? AND revoked_at IS NULL`,
  );
  const pending = db.prepare<[], { ca: string; count: number }>(
    `SELECT ca, count(*) AS count FROM request WHERE ${inStatus(['pending'])} GROUP BY ca ORDER BY ca`,
  );
  const lockouts = db.prepare<[number], { n: number }>('SELECT count(*) AS n FROM lockout WHERE locked_until > ?');
  return {
    countEvents: ({ since, until, interval, ca }: StatisticsFilter): Operation<readonly Count[]> =>
      counts.all({
        from: Math.floor(since / STATISTICS_HOUR),
        to: Math.ceil(until / STATISTICS_HOUR),
        hours: interval / STATISTICS_HOUR,
        ca: ca ?? null,
      }),
    *countCertificatesByEnd(now: number, ends: readonly number[]): Operation<readonly number[]> {
      const found = yield* db.together(
        [...ends, Number.MAX_SAFE_INTEGER].map((end, index) => ending.get(ends[index - 1] ?? now, end)),
      );
      return found.map((row) => row?.n ?? 0);
    },
    *countWaiting(now: number): Operation<Waiting> {
      const [waiting, locked] = yield* db.together([pending.all(), lockouts.get(now)]);
      return { pending: waiting, lockouts: locked?.n ?? 0 };
    },
  };
}
