import type { AuditEvent } from '../../audit/event.ts';
import type {
  CertificateFilter,
  CertificateRow,
  ListedCertificate,
  Revocation,
  RevokedCertificate,
  RevokeResult,
} from '../certificate-store.ts';
import type { Page } from '../page.ts';
import { readPosition, toPage, withoutPosition } from '../cursor.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import { CertificateSearch } from './search/certificate-search.ts';
import { fold } from '../fold.ts';
import {
  CERTIFICATE_COLUMNS,
  completedRow,
  LISTED_COLUMNS,
  SAME_KEY,
  type StoredCertificate,
  toCertificateRow,
} from '../rows/certificate.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/walk.ts';

/** The reads of certificates. */
export function certificateReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const search = new CertificateSearch<Omit<StoredCertificate, 'der'> & { position: number }>(
    db,
    LISTED_COLUMNS,
    limits,
  );
  const bySerial = db.prepare<[string], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE serial = ? ORDER BY ca`,
  );
  const byCaAndSerial = db.prepare<[string, string], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE serial = ? AND ca = ?`,
  );
  const revokedBySerial = db.prepare<[string], RevokedCertificate>(
    'SELECT ca, serial, der FROM certificate WHERE serial = ? AND revoked_at IS NOT NULL',
  );
  const otherLabels = db.prepare<[string], { label: string }>(
    'SELECT label FROM certificate INDEXED BY certificate_of_other_label WHERE ca = ? AND label IS NOT NULL LIMIT 1',
  );
  const byRequest = db.prepare<[string], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE request_id = ? AND length(der) > 0`,
  );
  const byKey = db.prepare<[string, number], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE key_identifier = ? ORDER BY position DESC LIMIT ?`,
  );
  return {
    getCertificates(serial: string, ca: string | undefined): readonly CertificateRow[] {
      return (ca === undefined ? bySerial.all(serial) : byCaAndSerial.all(serial, ca)).map(toCertificateRow);
    },
    hasOtherLabels: (ca: string): boolean => otherLabels.get(ca) !== undefined,
    findRevoked: (serial: string): readonly RevokedCertificate[] => revokedBySerial.all(serial),
    findCertificateByRequest(request_id: string): CertificateRow | undefined {
      const stored = byRequest.get(request_id);
      return stored === undefined ? undefined : toCertificateRow(stored);
    },
    findCertificatesByKey: (key_identifier: string): readonly CertificateRow[] =>
      byKey.all(key_identifier, SAME_KEY).map(toCertificateRow),
    listCertificates(filter: CertificateFilter, now: number): Page<ListedCertificate> {
      const { limit } = filter;
      const { rows, stopped } = search.find(filter, now, readPosition('certificate', filter));
      return toPage(
        'certificate',
        rows,
        limit,
        (row) => row.position,
        (row) => toCertificateRow(withoutPosition(row)),
        stopped,
      );
    },
  };
}

/** Inserts a certificate. `false`: the store has its serial number of this CA. @param issued_at null: as it says itself */
export function insertCertificate(db: Db): (row: CertificateRow, issued_at: number | null) => boolean {
  // By position: each name would be looked up in the row by itself.
  const insert = db.prepare(
    `INSERT INTO certificate (subject_folded, issued_at, ${CERTIFICATE_COLUMNS})
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  return (row, issued_at) => {
    const { ca, label, serial, subject, sans, not_before, not_after, der, fingerprint_sha256: fingerprint } = row;
    const owner = [row.requester, row.method, row.request_id, row.device, row.device_key] as const;
    const keys = [row.key_identifier, row.archived_key_id, row.revocation_challenge] as const;
    const end = [row.revoked_at, row.reason, row.invalidity_date] as const;
    const names = [subject, JSON.stringify(sans)] as const;
    return (
      insert.run(
        ...[fold(subject), issued_at, ca, label, serial, ...names, not_before, not_after, der, fingerprint],
        ...[...owner, ...keys, ...end],
      ).changes === 1
    );
  };
}

/** The writes of certificates after their issuance. */
export function certificateWrites(db: Db) {
  const revoke = db.prepare<[Revocation], { device_key: string | null }>(
    `UPDATE certificate SET revoked_at = @revoked_at, reason = @reason, invalidity_date = @invalidity_date
     WHERE ca = @ca AND serial = @serial AND revoked_at IS NULL RETURNING device_key`,
  );
  const exists = db.prepare<[string, string], { serial: string }>(
    'SELECT serial FROM certificate WHERE serial = ? AND ca = ?',
  );
  const insert = insertCertificate(db);
  const underWay = db.prepare<[string, string], { serial: string }>(
    'SELECT serial FROM reservation WHERE serial = ? AND ca = ?',
  );
  const takeRestored = db.prepare<[string, string], StoredCertificate>(
    `DELETE FROM certificate WHERE serial = ? AND ca = ? AND length(der) = 0 RETURNING ${CERTIFICATE_COLUMNS}`,
  );
  const completed = (row: CertificateRow): CertificateRow => {
    const restored = takeRestored.get(row.serial, row.ca);
    return restored === undefined ? row : completedRow(restored, row);
  };
  return {
    importCertificate(row: CertificateRow, events: readonly AuditEvent[]): Outcome<'imported' | 'known'> {
      if (underWay.get(row.serial, row.ca) !== undefined) return undone('known');
      return insert(completed(row), null) ? done('imported', events) : undone('known');
    },
    revokeCertificate(revocation: Revocation, events: readonly AuditEvent[]): Outcome<RevokeResult> {
      const revoked = revoke.get(revocation);
      if (revoked !== undefined) return done('revoked', events, revoked.device_key);
      return undone(exists.get(revocation.serial, revocation.ca) === undefined ? 'unknown' : 'already-revoked');
    },
  };
}
