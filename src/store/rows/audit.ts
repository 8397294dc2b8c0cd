import type { AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import { failed } from '../../errors.ts';

/** A row's record. @throws EstuaryError 500 `STORE_FAILED` */
export function toRecord(row: { line: string }): AuditRecord {
  const record: unknown = JSON.parse(row.line);
  if (!isAuditRecord(record))
    throw failed('STORE_FAILED', 'the store failed', { detail: `no audit record: ${row.line}` });
  return record;
}
