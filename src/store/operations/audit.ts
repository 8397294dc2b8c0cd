import type { AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import { storeFailed } from '../calls/errors.ts';
import { fold } from '../page.ts';

/** The record of a row. @throws EstuaryError 500 `STORE_FAILED` */
export function toRecord(row: { line: string }): AuditRecord {
  const record: unknown = JSON.parse(row.line);
  if (!isAuditRecord(record)) throw storeFailed(`no audit record: ${row.line}`);
  return record;
}

const COLUMNS = ['subject', 'ca', 'label', 'serial', 'request_id', 'device_key'] as const;
export type SearchColumns = Readonly<Record<(typeof COLUMNS)[number], string | null>>;

/** The columns that PostgreSQL searches. They repeat fields of the line, and `audit verify` compares them with it. */
export function searchColumns(line: string): SearchColumns {
  const { subject, ca, label, serial, request_id, device_key } = toRecord({ line });
  return {
    subject: subject === undefined ? null : storable(fold(subject)),
    ca: storable(ca),
    label: storable(label),
    serial: storable(serial),
    request_id: storable(request_id),
    device_key: storable(device_key),
  };
}

/** PostgreSQL's text cannot hold U+0000 and lone surrogates. */
export const storable = (text: string | null | undefined): string | null =>
  text?.replaceAll('\0', '\u2400').toWellFormed() ?? null;

/** The first column whose value differs from the line's. */
export function changedColumn(row: SearchColumns & { readonly line: string }): string | undefined {
  const columns = searchColumns(row.line);
  return COLUMNS.find((name) => row[name] !== columns[name]);
}
