import { type Certificate, parseCertificate, isIssuedBy } from '../pki/x509/certificate.ts';
import { namesMatch, type Name } from '../pki/x509/name.ts';
import { done, type Events, undone } from './calls/calls.ts';
import { storeFailed } from './calls/errors.ts';
import type { Page, PageRequest } from './page.ts';
import { type Calls, lock, quickRead, write } from './operation.ts';
import { AT_LABELS, type Condition, type Database, given, insertInto, type Operation, type Write } from './port.ts';

/** The label of a record: where it was requested if that differs from the CA's own; undefined without one. */
export const labelOf = ({ ca, label }: { readonly ca?: string | null; readonly label?: string | null }) =>
  label ?? ca ?? undefined;

export type CertificateStatus = 'valid' | 'revoked' | 'expired';

export interface CertificateRow {
  /** Label of the CA whose key signed it. */
  readonly ca: string;
  /** The label of the request, if it is not the CA's own. */
  readonly label: string | null;
  readonly serial: string;
  /** RFC 4514. */
  readonly subject: string;
  /** `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`. */
  readonly sans: readonly string[];
  readonly not_before: number;
  readonly not_after: number;
  /** Empty: a restored store knows it from the audit log alone (docs/guides/backup.md). */
  readonly der: Buffer;
  /** Hex SHA-256 of `der`. */
  readonly fingerprint_sha256: string;
  readonly requester: string;
  readonly method: string;
  readonly request_id: string;
  /** ID of its requester's device, and key of that entry; null: the requester is not a registered device. */
  readonly device: string | null;
  readonly device_key: string | null;
  /** `device_key`, if the label issues only to registered devices: the certificate authenticates this device. */
  readonly required_device: string | null;
  /** Hex of its subjectKeyIdentifier extension. */
  readonly key_identifier: string | null;
  readonly archived_key_id: string | null;
  /** Encoded hash of the secret that authorizes revocation; null without one. */
  readonly revocation_challenge: string | null;
  readonly revoked_at: number | null;
  /** RFC 5280 CRLReason name. */
  readonly reason: string | null;
  readonly invalidity_date: number | null;
}

export type ListedCertificate = Omit<CertificateRow, 'der'>;

/** All given criteria must match. */
export interface CertificateSelection {
  readonly ca?: string | undefined;
  /** A further label of a CA. */
  readonly label?: string | undefined;
  /** A substring of the subject, ignoring case. */
  readonly subject?: string | undefined;
  /** A substring of a subjectAltName, ignoring case. */
  readonly san?: string | undefined;
  readonly serial?: string | undefined;
  /** Lower-case hex. */
  readonly fingerprint_sha256?: string | undefined;
  readonly requester?: string | undefined;
  /** A device's ID in any of its entries. */
  readonly device?: string | undefined;
  readonly device_key?: string | undefined;
  readonly status?: CertificateStatus | undefined;
  readonly issued_after?: number | undefined;
  readonly expires_before?: number | undefined;
  /** Only certificates requested at these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface CertificateFilter extends CertificateSelection, PageRequest {}

export interface Revocation {
  readonly ca: string;
  readonly serial: string;
  readonly revoked_at: number;
  /** RFC 5280 CRLReason name. */
  readonly reason: string;
  readonly invalidity_date: number | null;
}

export type RevokedCertificate = Pick<CertificateRow, 'ca' | 'serial' | 'der'>;

export type RevokeResult = 'revoked' | 'already-revoked' | 'unknown';

export type ReleaseResult = 'released' | 'not-held' | 'unknown';

/** A certificate, and its issuer in the validated path; undefined without a path. */
export interface IssuedCertificate {
  readonly certificate: Certificate;
  readonly issuer: Certificate | undefined;
}

/**
 * Whether a row found by serial number has this issuer name. A restored row may lack its certificate; then the serial
 * number suffices, which is random and has at least 64 bits.
 */
export function isOfIssuer({ der }: Pick<CertificateRow, 'der'>, issuer: Name): boolean {
  return der.length === 0 || namesMatch(parseCertificate(der).issuer, issuer);
}

/**
 * Whether a row found by serial number is the record of a certificate: same issuer, by name and key. The encodings may
 * differ, because anyone can change an ECDSA signature (r, s) to (r, n − s).
 */
export async function isRecordOf(
  row: Pick<CertificateRow, 'der'>,
  { certificate, issuer }: IssuedCertificate,
): Promise<boolean> {
  if (issuer === undefined || row.der.length === 0) return isOfIssuer(row, certificate.issuer);
  return row.der.equals(certificate.der) || isIssuedBy(parseCertificate(row.der), issuer);
}

export const CERTIFICATE_COLUMNS =
  'ca, label, serial, subject, sans, not_before, not_after, der, fingerprint_sha256, requester, method, request_id, device, device_key, required_device, key_identifier, archived_key_id, revocation_challenge, revoked_at, reason, invalidity_date';

export const LISTED_COLUMNS = CERTIFICATE_COLUMNS.replace(' der,', '');

const STATUSES: Readonly<Record<CertificateStatus, Condition>> = {
  revoked: { sql: 'revoked_at IS NOT NULL', index: 'certificate_revoked' },
  valid: { sql: 'revoked_at IS NULL AND not_after >= @now' },
  expired: { sql: 'revoked_at IS NULL AND not_after < @now' },
};

/** How a driver finds parts of names: conditions on `@subject` and `@san`, and what they compare. */
export interface NameSearch {
  readonly subject: string;
  readonly san: string;
  readonly part: (text: string) => string;
}

/** The conditions of a list's filters, usually most selective first, and their parameters. */
export function certificateConditions(filter: CertificateFilter, now: number, names: NameSearch) {
  const { serial, device_key, device, requester, ca, label, labels, status, subject, san } = filter;
  const conditions: readonly Condition[] = [
    ...given([
      { value: labels, sql: AT_LABELS },
      { value: serial, sql: 'serial = @serial' },
      {
        value: filter.fingerprint_sha256,
        sql: 'fingerprint_sha256 = @fingerprint_sha256',
        index: 'certificate_by_fingerprint',
      },
      { value: device_key, sql: 'device_key = @device_key', index: 'certificate_by_device' },
      { value: device, sql: 'device = @device', index: 'certificate_by_device_id' },
      { value: requester, sql: 'requester = @requester', index: 'certificate_by_requester' },
    ]),
    ...(status === undefined ? [] : [STATUSES[status]]),
    ...given([
      { value: label, sql: 'label = @label', index: 'certificate_by_label' },
      { value: ca, sql: 'ca = @ca', index: 'certificate_by_ca' },
      { value: filter.expires_before, sql: 'not_after < @expires_before' },
      { value: filter.issued_after, sql: 'coalesce(issued_at, not_before) > @issued_after' },
      { value: subject, sql: names.subject },
      { value: san, sql: names.san },
    ]),
  ];
  const parts = {
    ...(subject === undefined ? {} : { subject: names.part(subject) }),
    ...(san === undefined ? {} : { san: names.part(san) }),
  };
  return { conditions, parameters: { ...filter, ...parts, now } };
}

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

const FIND = `SELECT ${CERTIFICATE_COLUMNS} FROM certificate WHERE`;
// SQLite would compile it again for each serial number if it ended with ORDER BY.
const BY_SERIAL = `${FIND} serial = ?`;
const BY_SERIAL_AND_CA = `${BY_SERIAL} AND ca = ?`;
const BY_REQUEST = `${FIND} request_id = ? AND length(der) > 0`;
const BY_KEY = `${FIND} key_identifier = ? ORDER BY position DESC LIMIT ${SAME_KEY}`;

export function certificateReads(db: Database) {
  return {
    getCertificates: quickRead(function* (serial: string, ca?: string): Operation<readonly CertificateRow[]> {
      const rows = yield* ca === undefined
        ? db.all<StoredCertificate>(BY_SERIAL, serial)
        : db.all<StoredCertificate>(BY_SERIAL_AND_CA, serial, ca);
      return rows.map(toCertificateRow).sort((a, b) => (a.ca < b.ca ? -1 : 1));
    }),
    /** The names that were authorized for a certificate, if its CA certified others. */
    getAuthorizedNames: quickRead(function* (serial: string, ca: string): Operation<string | undefined> {
      const sql = 'SELECT names FROM authorized_names WHERE serial = ? AND ca = ?';
      return (yield* db.get<{ names: string }>(sql, serial, ca))?.names;
    }),
    /** Whether a certificate of the CA was requested at a label other than its own. */
    hasOtherLabels: quickRead(function* (ca: string): Operation<boolean> {
      const row = yield* db.get`SELECT label FROM certificate INDEXED BY certificate_of_other_label
        WHERE ca = ${ca} AND label IS NOT NULL LIMIT 1`;
      return row !== undefined;
    }),
    /**
     * Revoked certificates with this serial number, of any CA; usually none. Each request with a client certificate calls
     * it.
     */
    findRevoked: quickRead(
      (serial: string) =>
        db.all<RevokedCertificate>`SELECT ca, serial, der FROM certificate WHERE serial = ${serial} AND revoked_at IS NOT NULL`,
    ),
    findCertificateByRequest: quickRead(function* (request_id: string): Operation<CertificateRow | undefined> {
      const stored = yield* db.get<StoredCertificate>(BY_REQUEST, request_id);
      return stored === undefined ? undefined : toCertificateRow(stored);
    }),
    /** By subjectKeyIdentifier (hex), newest first. */
    findCertificatesByKey: quickRead(function* (key_identifier: string): Operation<readonly CertificateRow[]> {
      return (yield* db.all<StoredCertificate>(BY_KEY, key_identifier)).map(toCertificateRow);
    }),
  };
}

/** Inserts a certificate. `false`: the store has its serial number of this CA. @param issued_at null: unknown */
export function insertCertificate(db: Database): (row: CertificateRow, issued_at: number | null) => Operation<boolean> {
  const names = Object.entries(db.dialect.nameColumns);
  const columns = [...names.map(([name]) => name), 'issued_at', ...CERTIFICATE_COLUMNS.split(', ')];
  // By position: SQLite would look up each name in the row.
  const insert = `INSERT INTO certificate (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
    ON CONFLICT DO NOTHING`;
  return function* (row, issued_at) {
    const { ca, label, serial, subject, sans, not_before, not_after, der, fingerprint_sha256: fingerprint } = row;
    const changes = yield* db.run(
      insert,
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
  AND (revoked_at IS NULL OR (reason = 'certificateHold' AND @reason <> 'certificateHold')) RETURNING device_key`;

export const RELEASE = `UPDATE certificate SET revoked_at = NULL, reason = NULL, invalidity_date = NULL
  WHERE ca = ? AND serial = ? AND reason = 'certificateHold' RETURNING device_key`;

export const AUTHORIZED_NAMES = insertInto('authorized_names', 'serial, ca, names');

/** Tables with facts about a certificate that outlive its row when an import completes it; parents first. */
const FACTS = ['authorized_names', 'certificate_use', 'given_to', 'rescue', 'rescue_request'];

const TAKE_RESTORED = `DELETE FROM certificate WHERE serial = ? AND ca = ? AND length(der) = 0
  RETURNING ${CERTIFICATE_COLUMNS}`;

const revoked = (of: Pick<Revocation, 'ca' | 'serial'>) => [...lock.certificate(of), ...lock.list(of.ca)];

export function certificateWrites(db: Database) {
  const insert = insertCertificate(db);
  const countChange = (ca: string, now: number) =>
    db.run`INSERT INTO crl_change (ca, changes, changed_at) VALUES (${ca}, 1, ${now}) ON CONFLICT (ca) DO UPDATE
      SET changes = crl_change.changes + 1, changed_at = coalesce(crl_change.changed_at, excluded.changed_at)`;
  const find = (serial: string, ca: string) =>
    db.get`SELECT serial FROM certificate WHERE serial = ${serial} AND ca = ${ca}`;
  return {
    /** Imports an existing certificate without a reservation. `known`: the store has this serial number of this CA. */
    importCertificate: write(lock.certificate, function* (row: CertificateRow, events: Events): Write<
      'imported' | 'known'
    > {
      const { serial, ca } = row;
      const reservation = yield* db.get`SELECT serial FROM reservation WHERE serial = ${serial} AND ca = ${ca}`;
      if (reservation !== undefined) return undone('known');
      const facts = yield* db.together(
        FACTS.map((table) => db.all<object>(`SELECT * FROM ${table} WHERE serial = ? AND ca = ?`, serial, ca)),
      );
      const restored = yield* db.get<StoredCertificate>(TAKE_RESTORED, serial, ca);
      const inserted = yield* insert(restored === undefined ? row : completedRow(restored, row), null);
      if (restored !== undefined)
        for (const [i, table] of FACTS.entries())
          for (const fact of facts[i] ?? []) yield* db.run(insertInto(table, Object.keys(fact).join(', ')), fact);
      return inserted ? done('imported', events) : undone('known');
    }),
    /**
     * Marks a certificate revoked; commits the events with `revoked` only. A held certificate gets the final reason and
     * keeps the time of the hold as its revocation date.
     */
    revokeCertificate: write(revoked, function* (revocation: Revocation, events: Events): Write<RevokeResult> {
      const { ca, serial, revoked_at } = revocation;
      const revoked = yield* db.get<Pick<CertificateRow, 'device_key'>>(REVOKE, revocation);
      if (revoked !== undefined) {
        yield* countChange(ca, revoked_at);
        return done('revoked', events, revoked.device_key);
      }
      return undone((yield* find(serial, ca)) === undefined ? 'unknown' : 'already-revoked');
    }),
    /** Ends a hold; commits the events with `released` only. */
    releaseCertificate: write(
      revoked,
      function* ({ ca, serial }: Pick<Revocation, 'ca' | 'serial'>, now: number, events: Events): Write<ReleaseResult> {
        const released = yield* db.get<Pick<CertificateRow, 'device_key'>>(RELEASE, ca, serial);
        if (released !== undefined) {
          yield* countChange(ca, now);
          return done('released', events, released.device_key);
        }
        return undone((yield* find(serial, ca)) === undefined ? 'unknown' : 'not-held');
      },
    ),
  };
}

/**
 * An imported row completed with data of a restore, which had only what the audit log contains: the owner and the
 * revocation.
 */
function completedRow(restored: StoredCertificate, row: CertificateRow): CertificateRow {
  const { der, fingerprint_sha256, key_identifier, subject, sans, not_before, not_after } = row;
  return { ...restored, der, fingerprint_sha256, key_identifier, subject, sans, not_before, not_after };
}

export type CertificateStore = CertificateListStore &
  Calls<ReturnType<typeof certificateReads> & ReturnType<typeof certificateWrites>>;

export interface CertificateListStore {
  /** In insertion order. */
  listCertificates(filter: CertificateFilter, now: number): Promise<Page<ListedCertificate>>;
}
