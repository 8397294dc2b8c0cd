/** Statistics of requests and certificates, derived from the audit log. */
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

/**
 * Hourly counters, updated in the transaction of each audit record: their cost does not depend on the number of
 * certificates, and they remain when records are archived.
 */
export interface StatisticsStore {
  /** Counts by interval; intervals without events have no row. */
  countEvents(filter: StatisticsFilter): Promise<readonly Count[]>;
  /**
   * Counts the valid certificates by expiry: before the first of `ends`, between consecutive ones, and after the last.
   * @param ends ascending
   * @param labels default: any
   */
  countCertificatesByEnd(now: number, ends: readonly number[], labels?: readonly string[]): Promise<readonly number[]>;
}

/** The shortest interval, in milliseconds. */
export const STATISTICS_HOUR = 3_600_000;
