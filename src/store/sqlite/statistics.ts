import { type Added, type Countable, countRecords } from '../counted-records.ts';
import { STATISTICS_HOUR, type Count, type StatisticsFilter } from '../statistics-store.ts';
import type { Db } from './database.ts';

interface Hours {
  readonly from: number;
  readonly to: number;
  /** Of an interval. */
  readonly hours: number;
  readonly ca: string | null;
}

/** Adds audit records to the counters, in the transaction that inserts them. */
export function statisticsWriter(db: Db): (records: readonly Countable[]) => void {
  const add = db.prepare<[Added]>(
    `INSERT INTO statistic (hour, ca, what, count) VALUES (@hour, @ca, @what, @count)
     ON CONFLICT (hour, ca, what) DO UPDATE SET count = count + excluded.count`,
  );
  return (records) => {
    for (const added of countRecords(records)) add.run(added);
  };
}

/** The reads of statistics. */
export function statisticsReads(db: Db) {
  // Bound numbers are floating-point ones to SQLite.
  const counts = db.prepare<[Hours], Count>(
    `SELECT hour / CAST(@hours AS INTEGER) * CAST(@hours AS INTEGER) * ${STATISTICS_HOUR} AS time, what, sum(count) AS count FROM statistic
     WHERE hour >= @from AND hour < @to AND (@ca IS NULL OR ca = @ca) GROUP BY 1, 2 ORDER BY 1, 2`,
  );
  const ending = db.prepare<[number, number], { n: number }>(
    `SELECT count(*) AS n FROM certificate INDEXED BY certificate_by_end
     WHERE not_after >= ? AND not_after < ? AND revoked_at IS NULL`,
  );
  return {
    countEvents({ since, until, interval, ca }: StatisticsFilter): readonly Count[] {
      return counts.all({
        from: Math.floor(since / STATISTICS_HOUR),
        to: Math.ceil(until / STATISTICS_HOUR),
        hours: interval / STATISTICS_HOUR,
        ca: ca ?? null,
      });
    },
    countCertificatesByEnd(now: number, ends: readonly number[]): readonly number[] {
      return [...ends, Number.MAX_SAFE_INTEGER].map((end, index) => ending.get(ends[index - 1] ?? now, end)?.n ?? 0);
    },
  };
}
