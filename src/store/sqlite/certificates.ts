import type { AuditEvent } from '../../audit/event.ts';
import { failed } from '../../errors.ts';
import type {
  CertificateFilter,
  CertificateRow,
  CertificateStatus,
  Revocation,
  RevokedCertificate,
  RevokeResult,
} from '../certificate-store.ts';
import type { Page } from '../page.ts';
import { readPosition, toPage, withoutPosition } from './cursor.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from './outcome.ts';

export const CERTIFICATE_COLUMNS =
  'ca, serial, subject, sans, not_before, not_after, der, fingerprint_sha256, requester, method, request_id, device, device_key, key_identifier, archived_key_id, revocation_challenge, revoked_at, reason, invalidity_date';

/** Certificates of one key that are looked at. */
const SAME_KEY = 8;

/** A row as SQLite has it. */
export type StoredCertificate = Omit<CertificateRow, 'sans'> & { readonly sans: string };

const CONDITIONS: Readonly<Record<CertificateStatus, string>> = {
  valid: 'revoked_at IS NULL AND not_after >= @now',
  revoked: 'revoked_at IS NOT NULL',
  expired: 'revoked_at IS NULL AND not_after < @now',
};

export function toCertificateRow(stored: StoredCertificate): CertificateRow {
  return { ...stored, sans: readSans(stored.sans, `certificate ${stored.ca} ${stored.serial}`) };
}

/** The names of a `sans` column. @throws EstuaryError 500 `STORE_FAILED` that names the row */
export function readSans(json: string, row: string): readonly string[] {
  const sans: unknown = JSON.parse(json);
  if (Array.isArray(sans) && sans.every((san) => typeof san === 'string')) return sans;
  throw failed('STORE_FAILED', 'the store failed', { detail: `${row}: sans is no list of strings` });
}

/** The WHERE clause of a list of certificates. */
function conditions(filter: CertificateFilter): string {
  const all = ['position > @after'];
  if (filter.ca !== undefined) all.push('ca = @ca');
  if (filter.serial !== undefined) all.push('serial = @serial');
  if (filter.device !== undefined) all.push('device = @device');
  if (filter.device_key !== undefined) all.push('device_key = @device_key');
  if (filter.subject !== undefined) all.push('instr(subject_folded, @subject) > 0');
  if (filter.expires_before !== undefined) all.push('not_after < @expires_before');
  if (filter.status !== undefined) all.push(CONDITIONS[filter.status]);
  return all.join(' AND ');
}

/** The reads of certificates. */
export function certificateReads(db: Db) {
  const bySerial = db.prepare<[string], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE serial = ? ORDER BY ca`,
  );
  const byCaAndSerial = db.prepare<[string, string], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE serial = ? AND ca = ?`,
  );
  const revokedBySerial = db.prepare<[string], RevokedCertificate>(
    'SELECT ca, serial, der FROM certificate WHERE serial = ? AND revoked_at IS NOT NULL',
  );
  const byFingerprint = db.prepare<[string], StoredCertificate>(
    `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE fingerprint_sha256 = ?`,
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
    findRevoked: (serial: string): readonly RevokedCertificate[] => revokedBySerial.all(serial),
    findCertificateByFingerprint(fingerprint: string): CertificateRow | undefined {
      const stored = byFingerprint.get(fingerprint);
      return stored === undefined ? undefined : toCertificateRow(stored);
    },
    findCertificateByRequest(request_id: string): CertificateRow | undefined {
      const stored = byRequest.get(request_id);
      return stored === undefined ? undefined : toCertificateRow(stored);
    },
    findCertificatesByKey: (key_identifier: string): readonly CertificateRow[] =>
      byKey.all(key_identifier, SAME_KEY).map(toCertificateRow),
    listCertificates(filter: CertificateFilter, now: number): Page<CertificateRow> {
      const { limit } = filter;
      const rows = db
        .prepare<[object], StoredCertificate & { position: number }>(
          `SELECT position, ${CERTIFICATE_COLUMNS} FROM certificate WHERE ${conditions(filter)} ORDER BY position LIMIT @take`,
        )
        .all({
          ...filter,
          subject: filter.subject?.toLowerCase(),
          now,
          after: readPosition('certificate', filter),
          take: limit + 1,
        });
      return toPage(
        'certificate',
        rows,
        limit,
        (row) => row.position,
        (row) => toCertificateRow(withoutPosition(row)),
      );
    },
  };
}

/** Inserts a certificate; part of recording an issuance. */
export function insertCertificate(db: Db): (row: CertificateRow) => void {
  const insert = db.prepare<[object]>(
    `INSERT INTO certificate (subject_folded, ${CERTIFICATE_COLUMNS}) VALUES (@subject_folded, @ca, @serial, @subject, @sans,
     @not_before, @not_after, @der, @fingerprint_sha256, @requester, @method, @request_id, @device, @device_key,
     @key_identifier, @archived_key_id, @revocation_challenge, @revoked_at, @reason, @invalidity_date) ON CONFLICT DO NOTHING`,
  );
  return (row) => {
    const stored = { ...row, sans: JSON.stringify(row.sans), subject_folded: row.subject.toLowerCase() };
    if (insert.run(stored).changes === 0)
      throw failed('SERIAL_TAKEN', 'the certificate could not be recorded', {
        detail: `${row.ca} ${row.serial} is in the store already`,
      });
  };
}

/** The writes of certificates after their issuance. */
export function certificateWrites(db: Db) {
  const revoke = db.prepare<[Revocation]>(
    `UPDATE certificate SET revoked_at = @revoked_at, reason = @reason, invalidity_date = @invalidity_date
     WHERE ca = @ca AND serial = @serial AND revoked_at IS NULL`,
  );
  const exists = db.prepare<[string, string], { serial: string }>(
    'SELECT serial FROM certificate WHERE serial = ? AND ca = ?',
  );
  return {
    revokeCertificate(revocation: Revocation, events: readonly AuditEvent[]): Outcome<RevokeResult> {
      if (revoke.run(revocation).changes === 1) return done('revoked', events);
      return undone(exists.get(revocation.serial, revocation.ca) === undefined ? 'unknown' : 'already-revoked');
    },
  };
}
