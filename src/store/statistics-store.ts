/** What is counted of requests and certificates, by what the audit log says of them. */
export const STATISTICS = [
  /** Certificates, without renewals. */
  'issued',
  /** Certificates of simplereenroll. */
  'renewed',
  /** Requests of somebody who was authenticated. */
  'refused',
  /** Requests that something of ours, or a CA behind, failed. */
  'failed',
  /** Requests that went into the queue. */
  'queued',
  /** Certificates. */
  'revoked',
  /** Refused credentials of devices and administrators. */
  'unauthenticated',
] as const;

export type Statistic = (typeof STATISTICS)[number];

export interface StatisticsFilter {
  /** Milliseconds; a whole number of {@link interval}. */
  readonly since: number;
  /** Before this. */
  readonly until: number;
  /** Milliseconds, whole hours: what happened in one of them is one number. */
  readonly interval: number;
  /** A label. */
  readonly ca?: string | undefined;
  /** Only what happened at these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface Count {
  /** When the interval began. */
  readonly time: number;
  readonly what: Statistic;
  readonly count: number;
}

/**
 * Counters of whole hours, kept in the transaction of the audit record that each event is: they cost the same to read however many
 * certificates there are, and stay when records leave the store for an archive.
 */
export interface StatisticsStore {
  /** What there was, by interval; where there was nothing there is no row. */
  countEvents(filter: StatisticsFilter): Promise<readonly Count[]>;
  /**
   * Counts the valid certificates by the time when they expire: before the first of `ends`, from each to the next, and from
   * the last on.
   *
   * @param ends milliseconds since the epoch, ascending
   * @param labels absent: any
   */
  countCertificatesByEnd(now: number, ends: readonly number[], labels?: readonly string[]): Promise<readonly number[]>;
}

/** Milliseconds: the shortest interval. */
export const STATISTICS_HOUR = 3_600_000;
