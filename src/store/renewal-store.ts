import { done, type Events, undone } from './calls/calls.ts';
import {
  CERTIFICATE_COLUMNS,
  type CertificateRow,
  type CertificateSelection,
  type StoredCertificate,
  toCertificateRow,
} from './certificate-store.ts';
import { fold } from './page.ts';
import { type Calls, lock, quickRead, slowRead, write } from './operation.ts';
import { type Database, insertInto, type Operation, type Write } from './port.ts';

/** A replacement campaign: the matching certificates are to be replaced between `begins` and `due`. */
export interface RenewalRow {
  readonly id: string;
  readonly selection: CertificateSelection;
  readonly begins: number;
  readonly due: number;
  readonly created_by: string;
  readonly reason: string | null;
  readonly explanation_url: string | null;
  /** When it was reported that certificates are overdue; null: not yet. */
  readonly overdue_at: number | null;
}

/** A certificate, with the time of its issuance. */
export type IssuedCertificate = CertificateRow & { readonly issued_at: number };

/** What the renewal window of a certificate depends on. */
export type WindowedCertificate = Pick<
  IssuedCertificate,
  | 'ca'
  | 'label'
  | 'serial'
  | 'fingerprint_sha256'
  | 'subject'
  | 'sans'
  | 'not_before'
  | 'not_after'
  | 'issued_at'
  | 'requester'
  | 'device'
  | 'device_key'
  | 'revoked_at'
>;

const SAME = ['ca', 'label', 'serial', 'fingerprint_sha256', 'requester', 'device', 'device_key'] as const;

/** Whether a campaign replaces a certificate. Later certificates of the same holder are its replacements. */
export function replaces({ selection, begins }: RenewalRow, row: WindowedCertificate): boolean {
  const { subject, san, issued_after, expires_before, labels } = selection;
  return (
    row.issued_at <= begins &&
    (labels === undefined || labels.includes(row.label ?? row.ca)) &&
    SAME.every((name) => selection[name] === undefined || row[name] === selection[name]) &&
    (subject === undefined || fold(row.subject).includes(fold(subject))) &&
    (san === undefined || row.sans.some((name) => fold(name).includes(fold(san)))) &&
    (issued_after === undefined || row.issued_at > issued_after) &&
    (expires_before === undefined || row.not_after < expires_before)
  );
}

type StoredRenewal = Omit<RenewalRow, 'selection'> & { readonly selection: string };

export const RENEWAL_COLUMNS = 'id, selection, begins, due, created_by, reason, explanation_url, overdue_at';

/** Certificates, with the times of their issuance. */
export const ISSUED = `SELECT ${CERTIFICATE_COLUMNS}, coalesce(issued_at, not_before) AS issued_at FROM certificate`;
const ISSUED_BY_ID = `${ISSUED} WHERE serial = ? AND ca = ?`;

/** What has become of a certificate. */
export interface Succession {
  readonly serial: string;
  readonly ca: string;
  readonly issued_at: number;
  /** 0 or 1: whether it has been replaced (docs/guides/fleet.md), by a certificate that is not revoked. */
  readonly replaced: number;
  /** When a renewal of its holder was last rejected; null: never. */
  readonly last_failed_at: number | null;
}

const LATER = `SELECT 1 FROM certificate_use AS found JOIN certificate AS later ON later.serial = found.serial AND later.ca = found.ca
  WHERE later.revoked_at IS NULL AND later.not_after >= @valid_at`;
const SUCCESSION = `SELECT own.serial, own.ca, coalesce(own.issued_at, own.not_before) AS issued_at, last_failed_at,
    CASE WHEN EXISTS (${LATER} AND found.renewed_serial = own.serial AND found.renewed_ca = own.ca)
      OR EXISTS (${LATER} AND found.holder = used.holder AND (found.issued_at, later.position) > (used.issued_at, own.position))
    THEN 1 ELSE 0 END AS replaced
  FROM certificate AS own LEFT JOIN certificate_use AS used ON used.serial = own.serial AND used.ca = own.ca
  LEFT JOIN holder ON holder.key = used.holder WHERE own.serial = ANY(@serials)`;

export function renewalReads(db: Database) {
  return {
    /** Running campaigns, in the order of their start. */
    listRenewals: quickRead(function* (): Operation<readonly RenewalRow[]> {
      const rows = yield* db.all<StoredRenewal>(`SELECT ${RENEWAL_COLUMNS} FROM renewal ORDER BY position`);
      return rows.map((row) => ({ ...row, selection: JSON.parse(row.selection) as RenewalRow['selection'] }));
    }),
    /** One certificate, for its renewal information. */
    findIssued: quickRead(function* (ca: string, serial: string): Operation<IssuedCertificate | undefined> {
      const row = yield* db.get<StoredCertificate & { issued_at: number }>(ISSUED_BY_ID, serial, ca);
      return row === undefined ? undefined : toCertificateRow(row);
    }),
    /**
     * What has become of the certificates with these serial numbers.
     * @param valid_at replacements that expired before do not count
     */
    listSuccessions: slowRead((serials: readonly string[], valid_at = 0) =>
      db.all<Succession>(SUCCESSION, { serials, valid_at }),
    ),
  };
}

const started = ({ id }: RenewalRow) => lock.renewal(id);

export function renewalWrites(db: Database) {
  return {
    startRenewal: write(started, function* (row: RenewalRow, events: Events): Write<void> {
      const stored: StoredRenewal = { ...row, selection: JSON.stringify(row.selection) };
      yield* db.run(insertInto('renewal', RENEWAL_COLUMNS), stored);
      return done(undefined, events);
    }),
    /** `false`: there is no such campaign. */
    endRenewal: write(lock.renewal, function* (id: string, events: Events): Write<boolean> {
      return (yield* db.run`DELETE FROM renewal WHERE id = ${id}`) === 1 ? done(true, events) : undone(false);
    }),
    /** Records that overdue certificates were reported, once. */
    noteOverdue: write(lock.renewal, function* (id: string, now: number, events: Events): Write<boolean> {
      const changes = yield* db.run`UPDATE renewal SET overdue_at = ${now} WHERE id = ${id} AND overdue_at IS NULL`;
      return changes === 1 ? done(true, events) : undone(false);
    }),
  };
}

export type RenewalStore = Calls<ReturnType<typeof renewalReads> & ReturnType<typeof renewalWrites>>;
