/** Counts events by hour, certificates by expiry date, and pending items. */
import type { AuditEvent } from '../audit/event.ts';
import type { ChainedRecord } from '../audit/record.ts';
import { toRecord } from './audit-store.ts';
import { labelOf } from './certificate-store.ts';
import { storable } from './page.ts';
import { done } from './calls/calls.ts';
import { type Calls, nothing, slowRead, write } from './operation.ts';
import { AT_LABELS, type Database, type Operation, type Write } from './port.ts';

/** Statistics of requests and certificates, derived from the audit log except for the last. */
export const STATISTICS = [
  /** Certificates, without renewals. */
  'issued',
  /** Certificates of simplereenroll. */
  'renewed',
  /** Rejected requests of authenticated requesters. */
  'refused',
  /** Requests that failed here or at a remote CA. */
  'failed',
  /** Queued requests. */
  'queued',
  /** Certificates. */
  'revoked',
  /** Rejected credentials of devices and administrators. */
  'unauthenticated',
  /** Error responses of any code to devices, and rejected credentials of administrators; not from the audit log. */
  'rejected',
] as const;

export type Statistic = (typeof STATISTICS)[number];

export interface StatisticsFilter {
  /** A multiple of {@link interval}. */
  readonly since: number;
  /** Exclusive. */
  readonly until: number;
  /** Milliseconds, whole hours; one count per interval. */
  readonly interval: number;
  /** A label. */
  readonly ca?: string | undefined;
  /** Only events at these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface Count {
  /** Start of the interval. */
  readonly time: number;
  readonly what: Statistic;
  readonly count: number;
}

/** Rejected requests at a label. */
export interface Rejection {
  /** The label; empty: none. */
  readonly ca: string;
  readonly code: string;
  readonly count: number;
}

/** Before the code in `statistic.what`. */
const CODE = 'code ';

/** The shortest interval, in milliseconds. */
export const STATISTICS_HOUR = 3_600_000;

const OF_TYPE = new Map<string, Statistic>([
  ['certificate.issued', 'issued'],
  ['certificate.denied', 'refused'],
  ['certificate.failed', 'failed'],
  ['certificate.revoked', 'revoked'],
  ['request.queued', 'queued'],
]);

export interface Added {
  /** Hours since the epoch. */
  readonly hour: number;
  /** The label; empty: none. */
  readonly ca: string;
  readonly what: Statistic;
  count: number;
}

const isAuthentication = (type: string): boolean => type.startsWith('auth.');

function statisticOf({ type, outcome, operation }: AuditEvent): Statistic | undefined {
  if (type === 'certificate.issued' && operation === 'simplereenroll') return 'renewed';
  if (isAuthentication(type)) return outcome === 'failure' ? 'unauthenticated' : undefined;
  return OF_TYPE.get(type);
}

export type Countable = Pick<ChainedRecord, 'type' | 'time' | 'line' | 'event'>;

/** @param records with their lines in the audit file, which are parsed if a record is not new */
export function countRecords(records: readonly Countable[]): Added[] {
  const counts = new Map<string, Added>();
  for (const { type, time, line, event } of records) {
    if (!OF_TYPE.has(type) && !isAuthentication(type)) continue;
    const record = event ?? toRecord({ line });
    const what = statisticOf(record);
    if (what === undefined) continue;
    const hour = Math.floor(time / STATISTICS_HOUR);
    const ca = storable(labelOf(record) ?? '');
    const key = `${hour} ${what} ${ca}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { hour, ca, what, count: 1 });
    else known.count++;
  }
  return [...counts.values()];
}

interface CountOfCa {
  readonly ca: string;
  readonly count: number;
}

/** Pending items at a moment. */
export interface Waiting {
  /** Requests that await a decision, by CA. */
  readonly pending: readonly CountOfCa[];
  /** Locked-out keys. */
  readonly lockouts: number;
}

const NEXT_CA = 'SELECT ca FROM certificate WHERE ca > ? ORDER BY ca LIMIT 1';
const VALID_OF_CA = 'SELECT count(*) AS n FROM certificate WHERE ca = ? AND not_after >= ?';

export function statisticsReads(db: Database) {
  // SQLite binds numbers as floating-point values, whose division is not integral.
  const hours = 'CAST(@hours AS bigint)';
  return {
    /** Counts by interval; intervals without events have no row. */
    countEvents: slowRead(({ since, until, interval, ca, labels }: StatisticsFilter): Operation<readonly Count[]> => {
      const where = [
        'hour >= @from AND hour < @to',
        ...(ca === undefined ? [] : ['ca = @ca']),
        ...(labels === undefined ? [] : ['ca = ANY(@labels)']),
      ];
      return db.all<Count>(
        `SELECT hour / ${hours} * ${hours} * ${STATISTICS_HOUR} AS time,
           CASE WHEN what LIKE '${CODE}%' THEN 'rejected' ELSE what END AS what, CAST(sum(count) AS bigint) AS count
         FROM statistic
         WHERE ${where.join(' AND ')} GROUP BY 1, 2 ORDER BY 1, 2`,
        {
          from: Math.floor(since / STATISTICS_HOUR),
          to: Math.ceil(until / STATISTICS_HOUR),
          hours: interval / STATISTICS_HOUR,
          ca,
          labels,
        },
      );
    }),
    /** Rejected requests by label and code. @param since a time */
    countRejections: slowRead((since: number) =>
      db.all<Rejection>(
        `SELECT ca, substr(what, ${CODE.length + 1}) AS code, CAST(sum(count) AS bigint) AS count FROM statistic
         WHERE hour >= ? AND what LIKE '${CODE}%' GROUP BY 1, 2 ORDER BY 1, 2`,
        Math.floor(since / STATISTICS_HOUR),
      ),
    ),
    /**
     * Counts the valid certificates by expiry: before the first of `ends`, between consecutive ones, and after the last.
     * @param ends ascending
     * @param labels default: any
     */
    countCertificatesByEnd: slowRead(function* (
      now: number,
      ends: readonly number[],
      labels?: readonly string[],
    ): Operation<readonly number[]> {
      const ending = `SELECT count(*) AS n FROM certificate INDEXED BY certificate_by_end
        WHERE not_after >= @from AND not_after < @to AND revoked_at IS NULL
        ${labels === undefined ? '' : `AND ${AT_LABELS}`}`;
      const found = yield* db.together(
        [...ends, Number.MAX_SAFE_INTEGER].map((to, index) =>
          db.get<{ n: number }>(ending, { labels, from: ends[index - 1] ?? now, to }),
        ),
      );
      return found.map((row) => row?.n ?? 0);
    }),
    /** Certificates that have not expired, also revoked ones, of CAs with other labels. Seeks each label in the index. */
    countOfOtherCas: slowRead(function* (labels: readonly string[], now: number): Operation<readonly CountOfCa[]> {
      const found: CountOfCa[] = [];
      let ca = '';
      for (;;) {
        const next: { ca: string } | undefined = yield* db.get<{ ca: string }>(NEXT_CA, ca);
        if (next === undefined) return found;
        ({ ca } = next);
        if (labels.includes(ca)) continue;
        const row = yield* db.get<{ n: number }>(VALID_OF_CA, ca, now);
        if (row !== undefined && row.n > 0) found.push({ ca, count: row.n });
      }
    }),
    /** Pending items, for the metrics. */
    countWaiting: slowRead(function* (now: number): Operation<Waiting> {
      const [pending, locked] = yield* db.together([
        db.all<CountOfCa>`SELECT ca, count(*) AS count FROM request WHERE status = 'pending'
          GROUP BY ca ORDER BY ca`,
        db.get<{ n: number }>`SELECT count(*) AS n FROM lockout WHERE locked_until > ${now}`,
      ]);
      return { pending, lockouts: locked?.n ?? 0 };
    }),
  };
}

/** @param node of PostgreSQL, where each node has its own rows */
export function rejectionWrites(db: Database, node?: string) {
  const [column, value] = node === undefined ? ['', ''] : ['node, ', '@node, '];
  const add = `INSERT INTO statistic (${column}hour, ca, what, count) VALUES (${value}@hour, @ca, @what, @count)
    ON CONFLICT (hour, ca, what${node === undefined ? '' : ', node'}) DO UPDATE SET count = statistic.count + excluded.count`;
  return {
    /** Adds to the counts of an hour since the epoch. */
    addRejections: write(nothing, function* (hour: number, rejections: readonly Rejection[]): Write<void> {
      for (const { ca, code, count } of rejections)
        yield* db.run(add, { ...(node === undefined ? {} : { node }), hour, ca, what: `${CODE}${code}`, count });
      return done(undefined, []);
    }),
  };
}

export type RejectionStore = Calls<ReturnType<typeof rejectionWrites>>;

/**
 * Hourly counters, updated in the transaction of each audit record: their cost does not depend on the number of
 * certificates, and they remain when records are archived.
 */
export type StatisticsStore = Calls<ReturnType<typeof statisticsReads>>;
