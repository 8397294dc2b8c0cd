import type { Anchor, AuditEvent, AuditRecord } from '../../audit/event.ts';
import type { AuditFilter } from '../audit-store.ts';
import type { Page } from '../page.ts';
import { readPosition, toPage } from '../cursor.ts';
import type { Db } from './database.ts';
import { done, type Outcome } from '../calls/outcome.ts';
import { toRecord } from '../rows/audit.ts';
import { AuditSearch } from './search/audit-search.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/walk.ts';

/** The reads of the audit log. */
export function auditReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const search = new AuditSearch(db, limits);
  return {
    listAudit(filter: AuditFilter): Page<AuditRecord> {
      const { rows, stopped } = search.find(filter, readPosition('audit', filter));
      return toPage('audit', rows, filter.limit, (row) => row.seq, toRecord, stopped);
    },
  };
}

/** The writes that consist of audit records alone. */
export function auditWrites() {
  return {
    audit: (events: readonly AuditEvent[]): Outcome<undefined> => done(undefined, events),
    // There is one chain.
    anchorAudit: (): Outcome<readonly Anchor[]> => done([], []),
    // Every transaction looks whether the file was renamed away; this one only comes in time.
    reopenAuditFile: (): Outcome<undefined> => done(undefined, []),
  };
}
