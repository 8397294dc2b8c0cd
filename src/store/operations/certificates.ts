import { storeFailed } from '../calls/errors.ts';
import { done, undone } from '../calls/calls.ts';
import type { CertificateRow, Revocation, RevokedCertificate } from '../certificate-store.ts';
import type { Database, Operation, Reads, Writes } from './port.ts';

export const CERTIFICATE_COLUMNS =
  'ca, label, serial, subject, sans, not_before, not_after, der, fingerprint_sha256, requester, method, request_id, device, device_key, required_device, key_identifier, archived_key_id, revocation_challenge, revoked_at, reason, invalidity_date';

export const LISTED_COLUMNS = CERTIFICATE_COLUMNS.replace(' der,', '');

/** Maximum certificates of one key that are returned. */
const SAME_KEY = 8;

export type StoredCertificate = Omit<CertificateRow, 'sans'> & { readonly sans: string };

export function toCertificateRow<Stored extends Pick<StoredCertificate, 'ca' | 'serial' | 'sans'>>(
  stored: Stored,
): Omit<Stored, 'sans'> & Pick<CertificateRow, 'sans'> {
  return { ...stored, sans: readSans(stored.sans, `certificate ${stored.ca} ${stored.serial}`) };
}

/** The names in a `sans` column. @throws EstuaryError 500 `STORE_FAILED` that names the row */
export function readSans(json: string, row: string): readonly string[] {
  const sans: unknown = JSON.parse(json);
  if (Array.isArray(sans) && sans.every((san) => typeof san === 'string')) return sans;
  throw storeFailed(`${row}: sans is no list of strings`);
}

export function certificateReads(db: Database) {
  const find = <Parameters extends readonly unknown[]>(rest: string) =>
    db.prepare<Parameters, StoredCertificate>(`SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE ${rest}`);
  // SQLite would compile it again for each serial number if it ended with ORDER BY.
  const bySerial = find<[string]>('serial = ?');
  const byCaAndSerial = find<[string, string]>('serial = ? AND ca = ?');
  const byRequest = find<[string]>('request_id = ? AND length(der) > 0');
  const byKey = find<[string]>(`key_identifier = ? ORDER BY position DESC LIMIT ${SAME_KEY}`);
  const revokedBySerial = db.prepare<[string], RevokedCertificate>(
    'SELECT ca, serial, der FROM certificate WHERE serial = ? AND revoked_at IS NOT NULL',
  );
  const otherLabels = db.prepare<[string], { label: string }>(
    `SELECT label FROM certificate ${db.dialect.indexedBy('certificate_of_other_label')}
     WHERE ca = ? AND label IS NOT NULL LIMIT 1`,
  );
  return {
    *getCertificates(serial, ca) {
      const rows = yield* ca === undefined ? bySerial.all(serial) : byCaAndSerial.all(serial, ca);
      return rows.map(toCertificateRow).sort((a, b) => (a.ca < b.ca ? -1 : 1));
    },
    *hasOtherLabels(ca) {
      return (yield* otherLabels.get(ca)) !== undefined;
    },
    findRevoked: (serial) => revokedBySerial.all(serial),
    *findCertificateByRequest(request_id) {
      const stored = yield* byRequest.get(request_id);
      return stored === undefined ? undefined : toCertificateRow(stored);
    },
    *findCertificatesByKey(key_identifier) {
      return (yield* byKey.all(key_identifier)).map(toCertificateRow);
    },
  } satisfies Reads;
}

/** Inserts a certificate. `false`: the store has its serial number of this CA. @param issued_at null: unknown */
export function insertCertificate(db: Database): (row: CertificateRow, issued_at: number | null) => Operation<boolean> {
  const names = Object.entries(db.dialect.nameColumns);
  const columns = [...names.map(([name]) => name), 'issued_at', ...CERTIFICATE_COLUMNS.split(', ')];
  // By position: SQLite would look up each name in the row.
  const insert = db.prepare<unknown[]>(
    `INSERT INTO certificate (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')}) ON CONFLICT DO NOTHING`,
  );
  return function* (row, issued_at) {
    const { ca, label, serial, subject, sans, not_before, not_after, der, fingerprint_sha256: fingerprint } = row;
    const changes = yield* insert.run(
      ...[...names.map(([, value]) => value(row)), issued_at, ca, label, serial, subject, JSON.stringify(sans)],
      ...[not_before, not_after, der, fingerprint, row.requester, row.method, row.request_id, row.device],
      ...[row.device_key, row.required_device, row.key_identifier, row.archived_key_id, row.revocation_challenge],
      ...[row.revoked_at, row.reason, row.invalidity_date],
    );
    return changes === 1;
  };
}

/**
 * Revokes; for a held certificate, the hold becomes final (X.509 §9.5.3.1: the revocation date is that of the hold).
 */
export const REVOKE = `UPDATE certificate SET revoked_at = coalesce(revoked_at, @revoked_at), reason = @reason,
  invalidity_date = coalesce(@invalidity_date, invalidity_date) WHERE ca = @ca AND serial = @serial
  AND (revoked_at IS NULL OR (reason = 'certificateHold' AND @reason <> 'certificateHold'))`;

export const RELEASE = `UPDATE certificate SET revoked_at = NULL, reason = NULL, invalidity_date = NULL
  WHERE ca = ? AND serial = ? AND reason = 'certificateHold'`;

export function certificateWrites(db: Database) {
  const revoke = db.prepare<Revocation, { device_key: string | null }>(`${REVOKE} RETURNING device_key`);
  const release = db.prepare<[string, string], { device_key: string | null }>(`${RELEASE} RETURNING device_key`);
  const change = db.prepare<[string, number]>(
    `INSERT INTO crl_change (ca, changes, changed_at) VALUES (?, 1, ?) ON CONFLICT (ca) DO UPDATE
     SET changes = crl_change.changes + 1, changed_at = coalesce(crl_change.changed_at, excluded.changed_at)`,
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
  return {
    *importCertificate(row, events) {
      const { serial, ca } = row;
      if ((yield* underWay.get(serial, ca)) !== undefined) return undone('known');
      const restored = yield* takeRestored.get(serial, ca);
      const inserted = yield* insert(restored === undefined ? row : completedRow(restored, row), null);
      return inserted ? done('imported', events) : undone('known');
    },
    *revokeCertificate(revocation, events) {
      const revoked = yield* revoke.get(revocation);
      if (revoked !== undefined) {
        yield* change.run(revocation.ca, revocation.revoked_at);
        return done('revoked', events, revoked.device_key);
      }
      const known = yield* exists.get(revocation.serial, revocation.ca);
      return undone(known === undefined ? 'unknown' : 'already-revoked');
    },
    *releaseCertificate({ ca, serial }, now, events) {
      const released = yield* release.get(ca, serial);
      if (released !== undefined) {
        yield* change.run(ca, now);
        return done('released', events, released.device_key);
      }
      return undone((yield* exists.get(serial, ca)) === undefined ? 'unknown' : 'not-held');
    },
  } satisfies Writes;
}

/**
 * An imported row completed with data of a restore, which had only what the audit log contains: the owner and the
 * revocation.
 */
function completedRow(restored: StoredCertificate, row: CertificateRow): CertificateRow {
  const { der, fingerprint_sha256, key_identifier, subject, sans, not_before, not_after } = row;
  return { ...restored, der, fingerprint_sha256, key_identifier, subject, sans, not_before, not_after };
}
