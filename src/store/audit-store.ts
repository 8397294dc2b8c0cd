import type { AuditEvent, AuditRecord, AuditType } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';

export interface AuditFilter extends PageRequest {
  readonly since?: number | undefined;
  readonly type?: AuditType | undefined;
}

/** The audit log. Events that belong to a change are committed by its call. */
export interface AuditStore {
  /** Commits events that belong to no other change. */
  audit(events: readonly AuditEvent[]): Promise<void>;
  /** Oldest first. */
  listAudit(filter: AuditFilter): Promise<Page<AuditRecord>>;
}
