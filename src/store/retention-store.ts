import type { ArchivedRange } from '../audit/event.ts';

/** A token that expired or was revoked by one time, or was used up by another. */
export interface OverSince {
  readonly ended: number;
  readonly used: number;
}

export interface OverTokens {
  readonly ids: readonly string[];
  /** Position of the next page; null: none. */
  readonly next: number | null;
}

export interface AuditLine {
  readonly seq: number;
  readonly time: number;
  readonly line: string;
}

/**
 * Deletion of old data. Every call processes one batch, so that others do not wait long, and returns the number; less
 * than {@link PURGED_AT_ONCE} means that all are done.
 */
export interface RetentionStore {
  /**
   * Certificates that expired before a time. A revoked one stays until its CA's latest CRL is younger than its expiry
   * (RFC 5280 §3.3), and the certificate of a queued request until that is gone.
   */
  purgeCertificates(ended_before: number): Promise<number>;
  /** A page of dead tokens. @param after 0, or `next` of the previous page */
  findOverTokens(since: OverSince, after: number): Promise<OverTokens>;
  /** Deletes those that are still dead and that no request or reservation refers to. */
  purgeTokens(ids: readonly string[], since: OverSince): Promise<number>;
  /** Registered devices whose `not_after` was before a time. */
  purgeDevices(ended_before: number): Promise<number>;
  /** Records after one, in order. @param node whose chain; absent: this node's. A driver with one chain ignores it */
  auditLines(after: number, limit: number, node?: string): Promise<readonly AuditLine[]>;
  /** The end of the archive according to the newest record about it; undefined: nothing is archived. */
  lastArchived(): Promise<ArchivedRange | undefined>;
  /** Commits the record that a range is archived; deletes nothing. */
  noteArchived(range: ArchivedRange, detail: string): Promise<void>;
  /** Deletes archived audit records. */
  purgeArchived(): Promise<number>;
}

/** The size of a batch. */
export const PURGED_AT_ONCE = 500;
