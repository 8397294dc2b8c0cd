import type { Anchor, ArchivedRange, AuditRecord, AuditType } from '../audit/event.ts';
import { isAuditRecord, type StoredLine } from '../audit/record.ts';
import { done, type Events } from './calls/calls.ts';
import { storeFailed } from './calls/errors.ts';
import { fold, type Page, type PageRequest, storable } from './page.ts';
import { type Calls, nothing, write } from './operation.ts';
import { result, type Write } from './port.ts';

/** All given criteria must match. */
export interface AuditFilter extends PageRequest {
  /** Inclusive. */
  readonly since?: number | undefined;
  /** Inclusive. */
  readonly until?: number | undefined;
  readonly type?: AuditType | undefined;
  /** A substring of the subject, ignoring case. */
  readonly subject?: string | undefined;
  readonly ca?: string | undefined;
  readonly serial?: string | undefined;
  readonly request_id?: string | undefined;
  /** Of this node's chain; ignored with a single chain. */
  readonly node?: string | undefined;
  /** Only records of these labels. */
  readonly labels?: readonly string[] | undefined;
}

/** Writes of the audit log that need no statement of their own. */
export const auditLogWrites = {
  /** Commits events without another change. */
  audit: write(nothing, (events: Events): Write<void> => result(done(undefined, events))),
  /**
   * Begins a new audit file if the old one was renamed or emptied (SIGHUP after a rotation). Every transaction checks
   * that; this one does so earlier.
   */
  reopenAuditFile: write(nothing, (): Write<void> => result(done(undefined, []))),
  /** Commits the record that a range is archived; deletes nothing. */
  noteArchived: write(nothing, (archived: ArchivedRange, detail: string): Write<void> =>
    result(done(undefined, [{ type: 'audit.archived', outcome: 'success', detail, archived }])),
  ),
};
type LogCalls = Calls<typeof auditLogWrites>;

/** The audit log. A change's call commits its events. */
export interface AuditStore extends Pick<LogCalls, 'audit'> {
  /**
   * Records the ends of the other nodes' chains in this one's, so that truncation is detected.
   * @param known the ends recorded before
   * @returns the ends recorded now: of each chain with something new
   */
  anchorAudit(known: readonly Anchor[]): Promise<readonly Anchor[]>;
  /** In chain order. */
  listAudit(filter: AuditFilter): Promise<Page<AuditRecord>>;
}

export type AuditLine = StoredLine & { readonly time: number };

/** The archive of old audit records. */
export interface ArchiveStore extends Pick<LogCalls, 'noteArchived'> {
  /** Records after one, in order. @param node whose chain; absent: this node's. A driver with one chain ignores it */
  auditLines(after: number, limit: number, node?: string): Promise<readonly AuditLine[]>;

  /** The end of the archive according to the newest record about it; undefined: nothing is archived. */
  lastArchived(): Promise<ArchivedRange | undefined>;

  /** Deletes a batch of archived audit records and returns their number (retention-store.ts). */
  purgeArchived(): Promise<number>;
}

/** The record of a row. @throws EstuaryError 500 `STORE_FAILED` */
export function toRecord(row: { line: string }): AuditRecord {
  const record: unknown = JSON.parse(row.line);
  if (!isAuditRecord(record)) throw storeFailed(`no audit record: ${row.line}`);
  return record;
}

/** Fields of a record that its row repeats, so that searches find it. */
export const SEARCH_COLUMNS = ['subject', 'ca', 'label', 'serial', 'request_id', 'device_key'] as const;
export type SearchColumns = Readonly<Record<(typeof SEARCH_COLUMNS)[number], string | null>>;

/** The columns that PostgreSQL searches. They repeat fields of the line, and `audit verify` compares them with it. */
export function searchColumns(line: string): SearchColumns {
  const { subject, ca, label, serial, request_id, device_key } = toRecord({ line });
  return {
    subject: subject === undefined ? null : storable(fold(subject)),
    ca: storable(ca ?? null),
    label: storable(label ?? null),
    serial: storable(serial ?? null),
    request_id: storable(request_id ?? null),
    device_key: storable(device_key ?? null),
  };
}

/** The first column whose value differs from the line's. */
export function changedColumn(row: SearchColumns & { readonly line: string }): string | undefined {
  const columns = searchColumns(row.line);
  return SEARCH_COLUMNS.find((name) => row[name] !== columns[name]);
}
