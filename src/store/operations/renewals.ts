import { done, undone } from '../calls/calls.ts';
import type { RenewalRow } from '../renewal-store.ts';
import { CERTIFICATE_COLUMNS, type StoredCertificate, toCertificateRow } from './certificates.ts';
import type { Database, Reads, Writes } from './port.ts';

type StoredRenewal = Omit<RenewalRow, 'selection'> & { readonly selection: string };

const COLUMNS = ['id', 'selection', 'begins', 'due', 'created_by', 'reason', 'explanation_url', 'overdue_at'];

export function renewalReads(db: Database) {
  const all = db.prepare<[], StoredRenewal>(`SELECT ${COLUMNS.join(', ')} FROM renewal ORDER BY position`);
  const issued = db.prepare<[string, string], StoredCertificate & { issued_at: number }>(
    `SELECT ${CERTIFICATE_COLUMNS}, coalesce(issued_at, not_before) AS issued_at FROM certificate WHERE serial = ? AND ca = ?`,
  );
  return {
    *listRenewals() {
      return (yield* all.all()).map((row) => ({
        ...row,
        selection: JSON.parse(row.selection) as RenewalRow['selection'],
      }));
    },
    *findIssued(ca, serial) {
      const row = yield* issued.get(serial, ca);
      return row === undefined ? undefined : toCertificateRow(row);
    },
  } satisfies Reads;
}

export function renewalWrites(db: Database) {
  const insert = db.prepare<StoredRenewal>(
    `INSERT INTO renewal (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `@${name}`).join(', ')})`,
  );
  const remove = db.prepare<[string]>('DELETE FROM renewal WHERE id = ?');
  const overdue = db.prepare<[number, string]>('UPDATE renewal SET overdue_at = ? WHERE id = ? AND overdue_at IS NULL');
  return {
    *startRenewal(row, events) {
      yield* insert.run({ ...row, selection: JSON.stringify(row.selection) });
      return done(undefined, events);
    },
    *endRenewal(id, events) {
      return (yield* remove.run(id)) === 1 ? done(true, events) : undone(false);
    },
    *noteOverdue(id, now, events) {
      return (yield* overdue.run(now, id)) === 1 ? done(true, events) : undone(false);
    },
  } satisfies Writes;
}
