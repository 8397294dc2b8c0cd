import type { AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import { storeFailed } from '../calls/errors.ts';

/** The record of a row. @throws EstuaryError 500 `STORE_FAILED` */
export function toRecord(row: { line: string }): AuditRecord {
  const record: unknown = JSON.parse(row.line);
  if (!isAuditRecord(record)) throw storeFailed(`no audit record: ${row.line}`);
  return record;
}
