import type { AuditEvent } from '../../audit/event.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type {
  CertificateFilter,
  CertificateRow,
  CertificateStatus,
  ListedCertificate,
  Revocation,
  RevokedCertificate,
  RevokeResult,
} from '../certificate-store.ts';
import { fold } from '../fold.ts';
import type { Page } from '../page.ts';
import {
  CERTIFICATE_COLUMNS,
  completedRow,
  LISTED_COLUMNS,
  SAME_KEY,
  type StoredCertificate,
  toCertificateRow,
} from '../rows/certificate.ts';
import { given, listing, partPattern } from './listing.ts';
import type { Queries } from './queries.ts';

const STATUSES: Readonly<Record<CertificateStatus, string>> = {
  revoked: 'revoked_at IS NOT NULL',
  valid: 'revoked_at IS NULL AND not_after >= @now',
  expired: 'revoked_at IS NULL AND not_after < @now',
};

/** What each filter asks of a row. */
function conditions(filter: CertificateFilter): readonly string[] {
  const { device_key, device, requester, ca, label, status, subject, san, serial, issued_after, expires_before } =
    filter;
  return [
    ...given([
      { value: serial, sql: 'serial = @serial' },
      { value: device_key, sql: 'device_key = @device_key' },
      { value: device, sql: 'device = @device' },
      { value: requester, sql: 'requester = @requester' },
      { value: label, sql: 'label = @label' },
      { value: ca, sql: 'ca = @ca' },
      { value: expires_before, sql: 'not_after < @expires_before' },
      { value: issued_after, sql: 'coalesce(issued_at, not_before) > @issued_after' },
      { value: subject, sql: 'subject_folded LIKE @subject' },
      // Names stand in lines of their own: what holds a line feed is part of none.
      { value: san, sql: san?.includes('\n') === true ? 'false' : 'sans_folded LIKE @san' },
    ]),
    ...(status === undefined ? [] : [STATUSES[status]]),
  ];
}

/** The reads of certificates. */
export function certificateReads(db: Queries) {
  const list = listing<Omit<StoredCertificate, 'der'>>(db, {
    name: 'certificate',
    table: 'certificate',
    columns: LISTED_COLUMNS,
  });
  const find = <Parameters extends readonly unknown[]>(rest: string) =>
    db.prepare<Parameters, StoredCertificate>(`SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE ${rest}`);
  const bySerial = find<[string]>('serial = ? ORDER BY ca');
  const byCaAndSerial = find<[string, string]>('serial = ? AND ca = ?');
  const byRequest = find<[string]>('request_id = ? AND length(der) > 0');
  const byKey = find<[string]>(`key_identifier = ? ORDER BY position DESC LIMIT ${SAME_KEY}`);
  const revokedBySerial = db.prepare<[string], RevokedCertificate>(
    'SELECT ca, serial, der FROM certificate WHERE serial = ? AND revoked_at IS NOT NULL',
  );
  const otherLabels = db.prepare<[string], { label: string }>(
    'SELECT label FROM certificate WHERE ca = ? AND label IS NOT NULL LIMIT 1',
  );
  const first = (rows: readonly StoredCertificate[]): CertificateRow | undefined => rows.map(toCertificateRow)[0];
  return {
    async getCertificates(serial: string, ca?: string): Promise<readonly CertificateRow[]> {
      const rows = await (ca === undefined ? bySerial.all(serial) : byCaAndSerial.all(serial, ca));
      return rows.map(toCertificateRow);
    },
    hasOtherLabels: async (ca: string): Promise<boolean> => (await otherLabels.get(ca)) !== undefined,
    findRevoked: (serial: string): Promise<readonly RevokedCertificate[]> => revokedBySerial.all(serial),
    findCertificateByRequest: async (request_id: string): Promise<CertificateRow | undefined> =>
      first(await byRequest.all(request_id)),
    findCertificatesByKey: async (key_identifier: string): Promise<readonly CertificateRow[]> =>
      (await byKey.all(key_identifier)).map(toCertificateRow),
    listCertificates(filter: CertificateFilter, now: number): Promise<Page<ListedCertificate>> {
      const { subject, san } = filter;
      const parameters = {
        ...filter,
        now,
        ...(subject === undefined ? {} : { subject: partPattern(subject) }),
        ...(san === undefined ? {} : { san: partPattern(san) }),
      };
      return list(conditions(filter), parameters, filter, toCertificateRow);
    },
  };
}

/** Inserts a certificate. `false`: the store has its serial number of this CA. @param issued_at null: as it says itself */
export function insertCertificate(db: Queries): (row: CertificateRow, issued_at: number | null) => Promise<boolean> {
  const insert = db.prepare<object>(
    `INSERT INTO certificate (subject_folded, sans_folded, issued_at, ${CERTIFICATE_COLUMNS})
     VALUES (@subject_folded, @sans_folded, @issued_at, @ca, @label, @serial, @subject, @sans,
     @not_before, @not_after, @der, @fingerprint_sha256, @requester, @method, @request_id, @device, @device_key,
     @key_identifier, @archived_key_id, @revocation_challenge, @revoked_at, @reason, @invalidity_date) ON CONFLICT DO NOTHING`,
  );
  return async (row, issued_at) =>
    (await insert.run({
      ...row,
      issued_at,
      sans: JSON.stringify(row.sans),
      subject_folded: fold(row.subject),
      sans_folded: fold(row.sans.join('\n')),
    })) === 1;
}

/** The writes of certificates after their issuance. */
export function certificateWrites(db: Queries) {
  const revoke = db.prepare<Revocation, { device_key: string | null }>(
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
  return {
    async importCertificate(
      row: CertificateRow,
      events: readonly AuditEvent[],
    ): Promise<Outcome<'imported' | 'known'>> {
      const { serial, ca } = row;
      if ((await underWay.get(serial, ca)) !== undefined) return undone('known');
      const restored = await takeRestored.get(serial, ca);
      const inserted = await insert(restored === undefined ? row : completedRow(restored, row), null);
      return inserted ? done('imported', events) : undone('known');
    },
    async revokeCertificate(revocation: Revocation, events: readonly AuditEvent[]): Promise<Outcome<RevokeResult>> {
      const revoked = await revoke.get(revocation);
      if (revoked !== undefined) return done('revoked', events, revoked.device_key);
      const known = await exists.get(revocation.serial, revocation.ca);
      return undone(known === undefined ? 'unknown' : 'already-revoked');
    },
  };
}
