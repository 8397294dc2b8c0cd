import type { Anchor, AuditEvent, AuditRecord, AuditType } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';

/** Which records; all that is given holds. */
export interface AuditFilter extends PageRequest {
  /** Of this time and later, in milliseconds. */
  readonly since?: number | undefined;
  /** Of this time and before. */
  readonly until?: number | undefined;
  readonly type?: AuditType | undefined;
  /** A part of the subject, upper and lower case alike. */
  readonly subject?: string | undefined;
  readonly ca?: string | undefined;
  readonly serial?: string | undefined;
  readonly request_id?: string | undefined;
  /** Of this node's chain; a driver that keeps one chain has no other. */
  readonly node?: string | undefined;
  /** Records of these labels only. */
  readonly labels?: readonly string[] | undefined;
}

/** The audit log. Events that belong to a change are committed by its call. */
export interface AuditStore {
  /** Commits events that belong to no other change. */
  audit(events: readonly AuditEvent[]): Promise<void>;
  /**
   * Notes the ends of the other nodes' chains in this one's: what is cut off there since is missed.
   *
   * @param known those that were noted before
   * @returns those that are noted now: of each chain that tells of something new
   */
  anchorAudit(known: readonly Anchor[]): Promise<readonly Anchor[]>;
  /** In the order of the chain. */
  listAudit(filter: AuditFilter): Promise<Page<AuditRecord>>;
}
