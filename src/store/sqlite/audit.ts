/** The audit log in SQLite: one chain, whose search indexes are filled later (search/index-rows.ts). */
import type { Anchor, ArchivedRange, AuditRecord } from '../../audit/event.ts';
import { parseLine } from '../../audit/record.ts';
import { type AuditFilter, toRecord, type AuditLine } from '../audit-store.ts';
import { done } from '../calls/calls.ts';
import { type Page, readPosition, toPage } from '../page.ts';
import type { Db } from './database.ts';
import { auditSearch } from './search/audit-search.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/list-search.ts';
import { Statements } from './statements.ts';
import { EVERYTHING, slowRead, write } from '../operation.ts';
import { type Operation, PURGED_AT_ONCE, result, type Write } from '../port.ts';

export function auditReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const search = auditSearch(db, limits);
  const statements = new Statements(db);
  return {
    listAudit: slowRead((filter: AuditFilter): Operation<Page<AuditRecord>> => {
      const { rows, stopped } = search(filter, readPosition('audit', filter));
      return result(toPage('audit', rows, filter, (row) => row.seq, toRecord, stopped));
    }),
    auditLines: slowRead((after: number, limit: number) =>
      result(
        statements.all<AuditLine>`SELECT seq, time, line FROM audit WHERE seq > ${after} ORDER BY seq LIMIT ${limit}`,
      ),
    ),
    lastArchived: slowRead(() => result(lastArchived(statements))),
  };
}

function lastArchived(statements: Statements): ArchivedRange | undefined {
  const row =
    statements.get<{ line: string }>`SELECT line FROM audit NOT INDEXED WHERE type = 'audit.archived'
      AND seq > (SELECT upto FROM search_progress WHERE list = 'audit') ORDER BY seq DESC LIMIT 1` ??
    statements.get<{ line: string }>`SELECT line FROM audit INDEXED BY audit_by_type WHERE indexed = 1
      AND type = 'audit.archived' ORDER BY seq DESC LIMIT 1`;
  return row === undefined ? undefined : parseLine(row.line)?.archived;
}

export function auditWrites(db: Db) {
  const statements = new Statements(db);
  return {
    // There is one chain.
    anchorAudit: write(EVERYTHING, (): Write<readonly Anchor[]> => result(done([], []))),
    purgeArchived: write(EVERYTHING, (): Write<number> => {
      const last = lastArchived(statements)?.last;
      if (last === undefined) return result(done(0, []));
      const changes = statements.run`DELETE FROM audit WHERE seq IN
        (SELECT seq FROM audit WHERE seq <= ${last} ORDER BY seq LIMIT ${PURGED_AT_ONCE})`;
      return result(done(changes, []));
    }),
  };
}
