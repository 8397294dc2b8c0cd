/** Counts events by hour, certificates by expiry date, and pending items. */
import { inStatus } from '../request-state.ts';
import { type Count, STATISTICS_HOUR } from '../statistics-store.ts';
import { atLabels, type Condition, type Database, LABEL, type Reads } from './port.ts';

const sqlOf = (conditions: readonly Condition[]): readonly string[] => conditions.map(({ sql }) => sql);

export function statisticsReads(db: Database) {
  // SQLite binds numbers as floating-point values, whose division is not integral.
  const hours = 'CAST(@hours AS bigint)';
  const pending = db.prepare<[], { ca: string; count: number }>(
    `SELECT ca, count(*) AS count FROM request WHERE ${inStatus(['pending'])} GROUP BY ca ORDER BY ca`,
  );
  const lockouts = db.prepare<[number], { n: number }>('SELECT count(*) AS n FROM lockout WHERE locked_until > ?');
  return {
    countEvents({ since, until, interval, ca, labels }) {
      const { conditions, parameters } = atLabels('ca', labels);
      const where = ['hour >= @from AND hour < @to', ...(ca === undefined ? [] : ['ca = @ca']), ...sqlOf(conditions)];
      const counts = db.prepare<object, Count>(
        `SELECT hour / ${hours} * ${hours} * ${STATISTICS_HOUR} AS time, what, CAST(sum(count) AS bigint) AS count FROM statistic
         WHERE ${where.join(' AND ')} GROUP BY 1, 2 ORDER BY 1, 2`,
      );
      return counts.all({
        ...parameters,
        from: Math.floor(since / STATISTICS_HOUR),
        to: Math.ceil(until / STATISTICS_HOUR),
        hours: interval / STATISTICS_HOUR,
        ca,
      });
    },
    *countCertificatesByEnd(now, ends, labels) {
      const { conditions, parameters } = atLabels(LABEL, labels);
      const where = ['not_after >= @from AND not_after < @to AND revoked_at IS NULL', ...sqlOf(conditions)];
      const ending = db.prepare<object, { n: number }>(
        `SELECT count(*) AS n FROM certificate ${db.dialect.indexedBy('certificate_by_end')} WHERE ${where.join(' AND ')}`,
      );
      const found = yield* db.together(
        [...ends, Number.MAX_SAFE_INTEGER].map((to, index) =>
          ending.get({ ...parameters, from: ends[index - 1] ?? now, to }),
        ),
      );
      return found.map((row) => row?.n ?? 0);
    },
    *countWaiting(now) {
      const [waiting, locked] = yield* db.together([pending.all(), lockouts.get(now)]);
      return { pending: waiting, lockouts: locked?.n ?? 0 };
    },
  } satisfies Reads;
}
