import type { AuditEvent, AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import { failed } from '../../errors.ts';
import type { AuditFilter } from '../audit-store.ts';
import type { Page } from '../page.ts';
import { readPosition, toPage } from './cursor.ts';
import type { Db } from './database.ts';
import { done, type Outcome } from './outcome.ts';
import { fold } from './search/fold.ts';
import { given, ListSearch } from './search/list-search.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/walk.ts';

/** A row's record. @throws EstuaryError 500 `STORE_FAILED` */
export function toRecord(row: { line: string }): AuditRecord {
  const record: unknown = JSON.parse(row.line);
  if (!isAuditRecord(record))
    throw failed('STORE_FAILED', 'the store failed', { detail: `no audit record: ${row.line}` });
  return record;
}

/** The reads of the audit log. */
export function auditReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  db.function('estuary_fold', { deterministic: true }, fold);
  const search = new ListSearch<{ seq: number; line: string }>(
    db,
    { table: 'audit', place: 'seq', columns: 'line' },
    limits,
  );
  return {
    listAudit(filter: AuditFilter): Page<AuditRecord> {
      const { request_id, serial, type, ca, subject, since, until, limit } = filter;
      const asked = given([
        { value: request_id, sql: 'request_id = @request_id', index: 'audit_by_request' },
        { value: serial, sql: 'serial = @serial', index: 'audit_by_serial' },
        { value: type, sql: 'type = @type', index: 'audit_by_type' },
        { value: ca, sql: 'ca = @ca', index: 'audit_by_ca' },
        { value: since, sql: 'time >= @since' },
        { value: until, sql: 'time <= @until' },
        { value: subject, sql: 'instr(estuary_fold(subject), @subject) > 0' },
      ]);
      const parameters = { ...filter, ...(subject === undefined ? {} : { subject: fold(subject) }) };
      const { rows, stopped } = search.find(asked, parameters, { ...filter, after: readPosition('audit', filter) });
      return toPage('audit', rows, limit, (row) => row.seq, toRecord, stopped);
    },
  };
}

/** The writes that consist of audit records alone. */
export function auditWrites() {
  return {
    audit: (events: readonly AuditEvent[]): Outcome<undefined> => done(undefined, events),
    // Every transaction looks whether the file was renamed away; this one only comes in time.
    reopenAuditFile: (): Outcome<undefined> => done(undefined, []),
  };
}
