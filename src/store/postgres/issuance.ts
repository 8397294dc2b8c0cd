import type { AuditEvent } from '../../audit/event.ts';
import { forbidden } from '../../errors.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { CertificateRow } from '../certificate-store.ts';
import type { ClaimResult, Reservation, ReserveResult } from '../issuance-store.ts';
import type { Repeatable } from '../otp-store.ts';
import { goes, mayGo, restsIn, TRANSITIONS } from '../request-state.ts';
import {
  type ClosedReservation,
  labelOf,
  RESERVATION_COLUMNS,
  reservationNotOpen,
  serialTakenError,
} from '../rows/reservation.ts';
import { otpReturned } from '../rows/otp.ts';
import { insertCertificate } from './certificates.ts';
import { mayIssueTo } from './device-admission.ts';
import { clearFailures } from './lockout.ts';
import { takeOtpUse } from './otp-uses.ts';
import type { Queries } from './queries.ts';

/** The reads of reservations. */
export function issuanceReads(db: Queries) {
  const all = db.prepare<[], Reservation>(`SELECT ${RESERVATION_COLUMNS} FROM reservation ORDER BY position`);
  const ofInstance = db.prepare<[string], Reservation>(
    `SELECT ${RESERVATION_COLUMNS} FROM reservation WHERE instance = ? ORDER BY position`,
  );
  return {
    openReservations: (instance?: string): Promise<readonly Reservation[]> =>
      instance === undefined ? all.all() : ofInstance.all(instance),
  };
}

/** Inserts a reservation; part of every way to one. */
export function insertReservation(db: Queries): (reservation: Reservation) => Promise<unknown> {
  const insert = db.prepare<Reservation>(
    `INSERT INTO reservation (${RESERVATION_COLUMNS}) VALUES (@request_id, @instance, @ca, @label, @serial, @requester, @operation,
     @subject, @spki_sha256, @otp_id, @device_key, @created_at)`,
  );
  return (reservation) => insert.run(reservation);
}

const CLOSE =
  'DELETE FROM reservation WHERE request_id = ? RETURNING request_id, ca, label, serial, otp_id, device_key, created_at';

/** Reserve, record, release: the two phases of an issuance, and the way back. */
export function issuanceWrites(db: Queries) {
  const takeUse = takeOtpUse(db);
  // Whoever ends requests for their age waits, or passes by.
  const claimable = db.prepare<[string], { id: string }>(
    `SELECT id FROM request WHERE id = ? AND ${restsIn(...TRANSITIONS.issue.from)} FOR UPDATE`,
  );
  // A CA's answer at once leaves no queued request behind, unless somebody was told meanwhile that it waits.
  const forget = db.prepare<[string]>(
    `DELETE FROM request WHERE id = ? AND ${mayGo('withdraw')} AND reference IS NULL
     AND polled_at IS NULL AND decided_at IS NULL`,
  );
  const markIssued = db.prepare<{ id: string; serial: string; at: number }>(
    `UPDATE request SET ${goes('issue')}, serial = @serial, changed_at = @at
     WHERE id = @id AND ${mayGo('issue')}`,
  );
  const taken = db.prepare<{ ca: string; serial: string | null }, { serial: string }>(
    `SELECT serial FROM reservation WHERE ca = @ca AND serial = @serial
     UNION ALL SELECT serial FROM certificate WHERE ca = @ca AND serial = @serial`,
  );
  const insert = insertReservation(db);
  const mayIssue = mayIssueTo(db);
  // The calls of a transaction see each other's statements: with the reservation its use goes on to what it is then, or back, at once.
  // Between two statements a repeat would find a use that nobody works for and that came to nothing.
  const record = db.prepare<[string], ClosedReservation>(
    `WITH closed AS (${CLOSE}), noted AS (
       UPDATE otp_use SET issued_at = closed.created_at FROM closed WHERE otp_use.request_id = closed.request_id
     ) SELECT * FROM closed`,
  );
  const release = db.prepare<[string], ClosedReservation & { client_id: string | null }>(
    `WITH closed AS (${CLOSE}), returned AS (
       UPDATE otp SET uses = uses - 1 FROM closed WHERE otp.id = closed.otp_id AND otp.uses > 0 RETURNING client_id
     ), forgotten AS (
       DELETE FROM otp_use USING closed WHERE otp_use.request_id = closed.request_id AND EXISTS (SELECT FROM returned)
     ) SELECT closed.*, (SELECT client_id FROM returned) AS client_id FROM closed`,
  );
  const insertRow = insertCertificate(db);
  const clear = clearFailures(db);
  const isTaken = async ({ ca, serial }: Reservation): Promise<boolean> =>
    serial !== null && (await taken.get({ ca, serial })) !== undefined;

  return {
    async reserve(
      reservation: Reservation,
      events: readonly AuditEvent[],
      repeatable?: Repeatable,
    ): Promise<Outcome<ReserveResult>> {
      const { otp_id, device_key, request_id, created_at } = reservation;
      const [may, serialTaken] = await Promise.all([
        mayIssue(device_key, labelOf(reservation), created_at),
        isTaken(reservation),
      ]);
      if (!may) return undone('device-refused');
      if (serialTaken) return undone('serial-taken');
      const use = otp_id === null ? 'taken' : await takeUse({ otp_id, request_id, now: created_at }, repeatable);
      if (use !== 'taken') return undone(use);
      await insert(reservation);
      return done('reserved', events, device_key);
    },
    async claimRequest(reservation: Reservation, events: readonly AuditEvent[]): Promise<Outcome<ClaimResult>> {
      const { request_id, device_key, created_at } = reservation;
      const [request, may, serialTaken] = await Promise.all([
        claimable.get(request_id),
        mayIssue(device_key, labelOf(reservation), created_at),
        isTaken(reservation),
      ]);
      if (request === undefined) return undone('request-taken');
      if (!may) return undone('device-refused');
      if (serialTaken) return undone('serial-taken');
      await insert({ ...reservation, otp_id: null });
      return done('reserved', events, device_key);
    },
    async recordCertificate(
      row: CertificateRow,
      events: readonly AuditEvent[],
      succeeded: readonly string[] = [],
    ): Promise<Outcome<undefined>> {
      const open = await record.get(row.request_id);
      if (open?.ca !== row.ca || open.label !== row.label || (open.serial !== null && open.serial !== row.serial))
        throw reservationNotOpen(row);
      // Whoever disables a device has no certificate of it to come; its expiry was judged at the reservation.
      if (!(await mayIssue(open.device_key, labelOf(open), open.created_at)))
        throw forbidden('DEVICE_NOT_REGISTERED', 'device not registered', { detail: 'disabled while the CA signed' });
      const { request_id, serial } = row;
      const [inserted] = await Promise.all([
        insertRow(row, open.created_at),
        forget.run(request_id),
        markIssued.run({ id: request_id, serial, at: open.created_at }),
        clear(succeeded),
      ]);
      if (!inserted) throw serialTakenError(row);
      return done(undefined, events, row.device_key);
    },
    async releaseReservation(request_id: string, events: readonly AuditEvent[]): Promise<Outcome<boolean>> {
      const open = await release.get(request_id);
      if (open === undefined) return undone(false);
      const { otp_id, client_id, device_key } = open;
      const isReturned = otp_id !== null && client_id !== null;
      const returned = isReturned ? [otpReturned({ otp_id, client_id, ca: labelOf(open), request_id })] : [];
      return done(true, [...events, ...returned], device_key);
    },
  };
}
