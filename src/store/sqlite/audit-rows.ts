import type { AuditEvent, AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import { failed } from '../../errors.ts';
import type { AuditFilter } from '../audit-store.ts';
import type { Page } from '../page.ts';
import { readPosition, toPage } from './cursor.ts';
import type { Db } from './database.ts';
import { done, type Outcome } from './outcome.ts';

/** A row's record. @throws EstuaryError 500 `STORE_FAILED` */
export function toRecord(row: { line: string }): AuditRecord {
  const record: unknown = JSON.parse(row.line);
  if (!isAuditRecord(record))
    throw failed('STORE_FAILED', 'the store failed', { detail: `no audit record: ${row.line}` });
  return record;
}

/** The reads of the audit log. */
export function auditReads(db: Db) {
  return {
    listAudit(filter: AuditFilter): Page<AuditRecord> {
      const where = ['seq > @after'];
      if (filter.since !== undefined) where.push('time >= @since');
      if (filter.type !== undefined) where.push('type = @type');
      const rows = db
        .prepare<[object], { line: string }>(
          `SELECT line FROM audit WHERE ${where.join(' AND ')} ORDER BY seq LIMIT @take`,
        )
        .all({ ...filter, after: readPosition('audit', filter), take: filter.limit + 1 });
      const records = rows.map(toRecord);
      return toPage(
        'audit',
        records,
        filter.limit,
        (record) => record.seq,
        (record) => record,
      );
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
