import type { Anchor, AuditEvent, AuditRecord, AuditType } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';

/** All given criteria must match. */
export interface AuditFilter extends PageRequest {
  /** Inclusive. */
  readonly since?: number | undefined;
  /** Inclusive. */
  readonly until?: number | undefined;
  readonly type?: AuditType | undefined;
  /** A substring of the subject, ignoring case. */
  readonly subject?: string | undefined;
  readonly ca?: string | undefined;
  readonly serial?: string | undefined;
  readonly request_id?: string | undefined;
  /** Of this node's chain; ignored with a single chain. */
  readonly node?: string | undefined;
  /** Only records of these labels. */
  readonly labels?: readonly string[] | undefined;
}

/** The audit log. A change's call commits its events. */
export interface AuditStore {
  /** Commits events without another change. */
  audit(events: readonly AuditEvent[]): Promise<void>;
  /**
   * Records the ends of the other nodes' chains in this one's, so that truncation is detected.
   * @param known the ends recorded before
   * @returns the ends recorded now: of each chain with something new
   */
  anchorAudit(known: readonly Anchor[]): Promise<readonly Anchor[]>;
  /** In chain order. */
  listAudit(filter: AuditFilter): Promise<Page<AuditRecord>>;
}
