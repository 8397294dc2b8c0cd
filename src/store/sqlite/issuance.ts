import type { AuditEvent } from '../../audit/event.ts';
import { goes, mayGo, restsIn, TRANSITIONS } from '../request-state.ts';
import { forbidden } from '../../errors.ts';
import type { CertificateRow } from '../certificate-store.ts';
import type { ClaimResult, Reservation, ReserveResult } from '../issuance-store.ts';
import type { Repeatable } from '../otp-store.ts';
import { insertCertificate } from './certificates.ts';
import {
  type ClosedReservation,
  labelOf,
  RESERVATION_COLUMNS,
  reservationNotOpen,
  serialTakenError,
} from '../rows/reservation.ts';
import type { Db } from './database.ts';
import { mayIssueTo } from './device-admission.ts';
import { clearFailures } from './lockout.ts';
import { giveBackOtpUse, noteUseIssued, takeOtpUse } from './otp-uses.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';

/** The reads of reservations. */
export function issuanceReads(db: Db) {
  const all = db.prepare<[], Reservation>(`SELECT ${RESERVATION_COLUMNS} FROM reservation ORDER BY position`);
  const ofInstance = db.prepare<[string], Reservation>(
    `SELECT ${RESERVATION_COLUMNS} FROM reservation WHERE instance = ? ORDER BY position`,
  );
  return {
    openReservations: (instance: string | undefined): readonly Reservation[] =>
      instance === undefined ? all.all() : ofInstance.all(instance),
  };
}

/** Inserts a reservation; part of every way to one. */
export function insertReservation(db: Db): (reservation: Reservation) => void {
  const insert = db.prepare(
    `INSERT INTO reservation (${RESERVATION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (r) => {
    const names = [r.serial, r.requester, r.operation, r.subject, r.spki_sha256] as const;
    insert.run(r.request_id, r.instance, r.ca, r.label, ...names, r.otp_id, r.device_key, r.created_at);
  };
}

/** Reserve, record, release: the two phases of an issuance, and the way back. */
export function issuanceWrites(db: Db) {
  const takeUse = takeOtpUse(db);
  const giveBackUse = giveBackOtpUse(db);
  const noteIssued = noteUseIssued(db);
  const claimable = db.prepare<[string], { id: string }>(
    `SELECT id FROM request WHERE id = ? AND ${restsIn(...TRANSITIONS.issue.from)}`,
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
  const serialTaken = db.prepare<{ ca: string; serial: string | null }, { serial: string }>(
    `SELECT serial FROM reservation WHERE ca = @ca AND serial = @serial
     UNION ALL SELECT serial FROM certificate WHERE ca = @ca AND serial = @serial`,
  );
  const insert = insertReservation(db);
  const mayIssue = mayIssueTo(db);
  const close = db.prepare<[string], ClosedReservation>(
    'DELETE FROM reservation WHERE request_id = ? RETURNING ca, label, serial, otp_id, device_key, created_at',
  );
  const insertRow = insertCertificate(db);
  const clear = clearFailures(db);

  return {
    reserve(reservation: Reservation, events: readonly AuditEvent[], repeatable?: Repeatable): Outcome<ReserveResult> {
      const { ca, serial, otp_id, device_key, request_id, created_at } = reservation;
      if (!mayIssue(device_key, labelOf(reservation), created_at)) return undone('device-refused');
      if (serial !== null && serialTaken.get({ ca, serial }) !== undefined) return undone('serial-taken');
      const taken = otp_id === null ? 'taken' : takeUse({ otp_id, request_id, now: created_at }, repeatable);
      if (taken !== 'taken') return undone(taken);
      insert(reservation);
      return done('reserved', events, device_key);
    },
    claimRequest(reservation: Reservation, events: readonly AuditEvent[]): Outcome<ClaimResult> {
      const { request_id, ca, serial, device_key } = reservation;
      if (claimable.get(request_id) === undefined) return undone('request-taken');
      if (!mayIssue(device_key, labelOf(reservation), reservation.created_at)) return undone('device-refused');
      if (serial !== null && serialTaken.get({ ca, serial }) !== undefined) return undone('serial-taken');
      insert({ ...reservation, otp_id: null });
      return done('reserved', events, device_key);
    },
    recordCertificate(
      row: CertificateRow,
      events: readonly AuditEvent[],
      succeeded: readonly string[] = [],
    ): Outcome<undefined> {
      const open = close.get(row.request_id);
      if (open?.ca !== row.ca || open.label !== row.label || (open.serial !== null && open.serial !== row.serial))
        throw reservationNotOpen(row);
      // Whoever disables a device has no certificate of it to come; its expiry was judged at the reservation.
      if (!mayIssue(open.device_key, labelOf(open), open.created_at))
        throw forbidden('DEVICE_NOT_REGISTERED', 'device not registered', { detail: 'disabled while the CA signed' });
      if (!insertRow(row, open.created_at)) throw serialTakenError(row);
      forget.run(row.request_id);
      markIssued.run({ id: row.request_id, serial: row.serial, at: open.created_at });
      if (row.method === 'otp') noteIssued(row.request_id, open.created_at);
      clear(succeeded);
      return done(undefined, events, row.device_key);
    },
    releaseReservation(request_id: string, events: readonly AuditEvent[]): Outcome<boolean> {
      const open = close.get(request_id);
      if (open === undefined) return undone(false);
      return done(true, [...events, ...giveBackUse(open.otp_id, labelOf(open), request_id)], open.device_key);
    },
  };
}
