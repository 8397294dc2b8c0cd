/** The audit log in SQLite: one chain, whose search indexes are filled later (search/index-rows.ts). */
import type { Anchor, ArchivedRange, AuditRecord } from '../../audit/event.ts';
import { parseLine } from '../../audit/record.ts';
import { type AuditFilter, toRecord, type AuditLine } from '../audit-store.ts';
import { done, type Outcome } from '../calls/calls.ts';
import { type Page, readPosition, toPage } from '../page.ts';
import type { Db } from './database.ts';
import { auditSearch } from './search/audit-search.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/list-search.ts';
import { PURGED_AT_ONCE } from '../port.ts';

export function auditReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const search = auditSearch(db, limits);
  const lines = db.prepare<[number, number], AuditLine>(
    'SELECT seq, time, line FROM audit WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  return {
    listAudit(filter: AuditFilter): Page<AuditRecord> {
      const { rows, stopped } = search(filter, readPosition('audit', filter));
      return toPage('audit', rows, filter.limit, (row) => row.seq, toRecord, stopped);
    },
    auditLines: (after: number, limit: number): readonly AuditLine[] => lines.all(after, limit),
    lastArchived: newestArchived(db),
  };
}

function newestArchived(db: Db): () => ArchivedRange | undefined {
  const newest = (from: string, where: string) =>
    db.prepare<[], { line: string }>(
      `SELECT line FROM ${from} WHERE ${where} AND type = 'audit.archived' ORDER BY seq DESC LIMIT 1`,
    );
  const behind = newest('audit NOT INDEXED', "seq > (SELECT upto FROM search_progress WHERE list = 'audit')");
  const indexed = newest('audit INDEXED BY audit_by_type', 'indexed = 1');
  return () => {
    const row = behind.get() ?? indexed.get();
    return row === undefined ? undefined : parseLine(row.line)?.archived;
  };
}

export function auditWrites(db: Db) {
  const records = db.prepare<[number]>(
    `DELETE FROM audit WHERE seq IN
     (SELECT seq FROM audit WHERE seq <= ? ORDER BY seq LIMIT ${PURGED_AT_ONCE})`,
  );
  const archived = newestArchived(db);
  return {
    // There is one chain.
    anchorAudit: (): Outcome<readonly Anchor[]> => done([], []),
    purgeArchived(): Outcome<number> {
      const last = archived()?.last;
      if (last === undefined) return done(0, []);
      return done(records.run(last).changes, []);
    },
  };
}
