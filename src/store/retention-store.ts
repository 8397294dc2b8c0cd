import type { ArchivedRange } from '../audit/event.ts';

/** A token that is over since a time: expired or revoked by then, or used up by another. */
export interface OverSince {
  /** Milliseconds since the epoch. */
  readonly ended: number;
  readonly used: number;
}

/** A page of tokens that were looked at. */
export interface OverTokens {
  readonly ids: readonly string[];
  /** What the next page comes after; null: that was the last. */
  readonly next: number | null;
}

/** An audit record as the audit file has it. */
export interface AuditLine {
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly line: string;
}

/**
 * What leaves the store for its age. Every call takes a batch, so that what waits meanwhile does not wait long, and says how many
 * there were: less than {@link PURGED_AT_ONCE} are all.
 */
export interface RetentionStore {
  /**
   * Certificates that ended before a time. A revoked one stays until its CA's latest CRL is younger than its end (RFC 5280 §3.3), and
   * one that a queued request came to until that is gone.
   */
  purgeCertificates(ended_before: number): Promise<number>;
  /** A page of the tokens that are over. @param after 0, or `next` of the page before */
  findOverTokens(since: OverSince, after: number): Promise<OverTokens>;
  /** Deletes those that are still over and that no request or reservation names. */
  purgeTokens(ids: readonly string[], since: OverSince): Promise<number>;
  /** Registered devices whose `not_after` was before a time. */
  purgeDevices(ended_before: number): Promise<number>;
  /** The records behind one, in order. */
  auditLines(after: number, limit: number): Promise<readonly AuditLine[]>;
  /** The end of what was archived: of the newest record that says so; undefined: nothing was. */
  lastArchived(): Promise<ArchivedRange | undefined>;
  /** Commits the record that says that a run is archived; nothing leaves the store by it. */
  noteArchived(range: ArchivedRange, detail: string): Promise<void>;
  /** Deletes audit records that are archived. */
  purgeArchived(): Promise<number>;
}

/** The size of a batch. */
export const PURGED_AT_ONCE = 500;
