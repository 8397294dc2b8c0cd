import { type Count, STATISTICS_HOUR, type StatisticsFilter } from '../statistics-store.ts';
import type { Queries } from './queries.ts';

/** The reads of statistics; the counters are written with the records (audit-log.ts), each node's in rows of its own. */
export function statisticsReads(db: Queries) {
  const counts = db.prepare<object, Count>(
    `SELECT hour / @hours::bigint * @hours::bigint * ${STATISTICS_HOUR} AS time, what, sum(count)::bigint AS count FROM statistic
     WHERE hour >= @from AND hour < @to AND (@ca::text IS NULL OR ca = @ca) GROUP BY 1, 2 ORDER BY 1, 2`,
  );
  const ending = db.prepare<[number, number], { n: number }>(
    'SELECT count(*) AS n FROM certificate WHERE not_after >= ? AND not_after < ? AND revoked_at IS NULL',
  );
  return {
    countEvents: ({ since, until, interval, ca }: StatisticsFilter): Promise<readonly Count[]> =>
      counts.all({
        from: Math.floor(since / STATISTICS_HOUR),
        to: Math.ceil(until / STATISTICS_HOUR),
        hours: interval / STATISTICS_HOUR,
        ca,
      }),
    async countCertificatesByEnd(now: number, ends: readonly number[]): Promise<readonly number[]> {
      const found = [...ends, Number.MAX_SAFE_INTEGER].map((end, index) => ending.get(ends[index - 1] ?? now, end));
      return (await Promise.all(found)).map((row) => row?.n ?? 0);
    },
  };
}
