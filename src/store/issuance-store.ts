/** The two phases of an issuance (reserve, record), and the release. */
import { type EstuaryError, failed, forbidden } from '../errors.ts';
import { done, type Events, undone } from './calls/calls.ts';
import { AUTHORIZED_NAMES, type CertificateRow, insertCertificate } from './certificate-store.ts';
import { giveBackOtpUse, otpReturned, type Repeatable, takeOtpUse } from './otp-store.ts';
import { beginWork, type Calls, completeWork, lock, quickRead, write } from './operation.ts';
import { type Database, type Operation, result, type Write } from './port.ts';
import { type RescuedRequest, takeRescue, useRescue } from './rescue-store.ts';
import { goes, mayGo, restsIn, TRANSITIONS } from './request-state.ts';

/** The intent to issue, committed before the CA signs. */
export interface Reservation {
  readonly request_id: string;
  /** The process that is working on it: only a dead process's reservations may be reconciled. */
  readonly instance: string;
  /** Label of the CA whose key signs. */
  readonly ca: string;
  /** The label of the request, if it is not the CA's own. */
  readonly label: string | null;
  /** null if the CA chooses the serial number (a remote PKI). */
  readonly serial: string | null;
  readonly requester: string;
  readonly operation: string;
  readonly subject: string;
  /** Hex SHA-256 of the requested SubjectPublicKeyInfo; null if the key does not exist yet. */
  readonly spki_sha256: string | null;
  /** The OTP of which one use is taken, in the same transaction. */
  readonly otp_id: string | null;
  readonly device_key: string | null;
  /**
   * `device_key`, if the label issues only to registered devices: it must be enabled until the certificate is recorded.
   */
  readonly required_device: string | null;
  readonly created_at: number;
  /** The pass that it needs, if any. */
  readonly rescued?: RescuedRequest | undefined;
}

/**
 * `repeated`: the same request has taken a use of the token, see {@link Repeatable}; `device-refused`: the device is
 * disabled, expired, deleted, or not admitted to this CA.
 */
export type ReserveResult =
  'reserved' | 'otp-unusable' | 'serial-taken' | 'device-refused' | 'repeated' | 'rescue-over';

/** `reserved`, or why not; `request-taken`: it is not approved (any more), or its issuance is in progress. */
export type ClaimResult = 'reserved' | 'request-taken' | 'serial-taken' | 'device-refused' | 'rescue-over';

export const RESERVATION_COLUMNS =
  'request_id, instance, ca, label, serial, requester, operation, subject, spki_sha256, otp_id, device_key, required_device, created_at';

type Closed = Pick<
  Reservation,
  'ca' | 'label' | 'serial' | 'otp_id' | 'device_key' | 'required_device' | 'created_at'
> & {
  /** 1: of a queued request. */
  readonly queued: number;
  /** 1: it has a pass. */
  readonly rescued: number;
};

/** Where the certificate was requested. */
const labelOf = ({ ca, label }: Pick<Reservation, 'ca' | 'label'>): string => label ?? ca;

type Recorded = Pick<CertificateRow, 'request_id' | 'ca' | 'serial'>;

const notOpen = ({ request_id, ca, serial }: Recorded): EstuaryError =>
  failed('RESERVATION_NOT_OPEN', 'the certificate could not be recorded', {
    detail: `no open reservation of request ${request_id} for ${ca} ${serial}`,
  });

export function issuanceReads(db: Database) {
  return {
    /** Open reservations of one instance, or of all; oldest first. */
    openReservations: quickRead((instance?: string) =>
      db.all<Reservation>(
        `SELECT ${RESERVATION_COLUMNS} FROM reservation WHERE instance = coalesce(@instance, instance)
         ORDER BY created_at, request_id`,
        { instance: instance ?? null },
      ),
    ),
  };
}

const INSERT = `INSERT INTO reservation (${RESERVATION_COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
  WHERE NOT EXISTS (SELECT 1 FROM certificate WHERE serial = ? AND ca = ?) ON CONFLICT (ca, serial) DO NOTHING`;

/** Inserts a reservation. `false`: the serial number is taken. */
export function* insertReservation(db: Database, r: Reservation): Operation<boolean> {
  const names = [r.serial, r.requester, r.operation, r.subject, r.spki_sha256];
  const others = [r.otp_id, r.device_key, r.required_device, r.created_at];
  return (yield* db.run(INSERT, r.request_id, r.instance, r.ca, r.label, ...names, ...others, r.serial, r.ca)) === 1;
}

const CLAIMABLE = `SELECT id FROM request WHERE id = ? AND ${restsIn(...TRANSITIONS.issue.from)} FOR UPDATE`;
// A CA that answers at once leaves no queued request, unless the requester was told that it is pending.
const FORGET = `DELETE FROM request WHERE id = ? AND ${mayGo('withdraw')} AND reference IS NULL
  AND polled_at IS NULL AND decided_at IS NULL`;
const MARK_ISSUED = `UPDATE request SET ${goes('issue')}, reason = NULL, serial = @serial, changed_at = @at
  WHERE id = @id AND ${mayGo('issue')}`;

const issued = (of: Pick<Reservation, 'request_id' | 'device_key' | 'ca' | 'serial'>) => [
  ...lock.request(of.request_id),
  ...lock.deviceOf(of.device_key),
  ...lock.certificate(of),
];
const claimed = (reservation: Reservation) => [...issued(reservation), ...lock.rescued(reservation.rescued)];
const reserved = (reservation: Reservation) => [...claimed(reservation), ...lock.token(reservation.otp_id)];

export function issuanceWrites(db: Database) {
  const insertRow = insertCertificate(db);
  const close = (request_id: string) =>
    db.get<Closed>`DELETE FROM reservation WHERE request_id = ${request_id}
      RETURNING ca, label, serial, otp_id, device_key, required_device, created_at,
        CASE WHEN EXISTS (SELECT 1 FROM request WHERE id = reservation.request_id) THEN 1 ELSE 0 END AS queued,
        CASE WHEN EXISTS (SELECT 1 FROM rescue_request WHERE request_id = reservation.request_id)
          THEN 1 ELSE 0 END AS rescued`;
  return {
    /**
     * Takes the OTP use (if any) and commits the intent. An OTP is usable if it is not revoked, not expired at
     * `created_at`, and has a use left. Any result except `reserved` means that nothing changed and no event was
     * committed.
     * @param repeatable of a request that takes a use: a repeat while it is in progress, or within its window, is
     * `repeated`
     */
    reserve: beginWork(
      reserved,
      function* (reservation: Reservation, events: Events, repeatable?: Repeatable): Write<ReserveResult> {
        const { otp_id, device_key, required_device, request_id, created_at } = reservation;
        if (!(yield* mayIssue(db, required_device, labelOf(reservation), created_at))) return undone('device-refused');
        const pass = yield* takeRescue(db, request_id, reservation.rescued, created_at);
        if (pass !== 'taken') return undone(pass);
        const use = yield* takeOtpUse(db, { otp_id, request_id, now: created_at }, repeatable);
        if (use !== 'taken') return undone(use);
        if (yield* insertReservation(db, reservation)) return done('reserved', events, device_key);
        yield* giveBackOtpUse(db, otp_id, reservation.ca, request_id);
        return undone('serial-taken');
      },
    ),
    /**
     * {@link reserve} for a queued request: the reservation has its ID and takes no OTP use, because the request holds
     * one. At most one is open per request across nodes; recording its certificate makes the request `issued`.
     */
    claimRequest: beginWork(claimed, function* (reservation: Reservation, events: Events): Write<ClaimResult> {
      const { request_id, device_key, required_device, created_at } = reservation;
      const [request, may] = yield* db.together([
        db.get(CLAIMABLE, request_id),
        mayIssue(db, required_device, labelOf(reservation), created_at),
      ]);
      if (request === undefined) return undone('request-taken');
      if (!may) return undone('device-refused');
      const pass = yield* takeRescue(db, request_id, reservation.rescued, created_at);
      if (pass !== 'taken') return undone(pass === 'repeated' ? 'request-taken' : pass);
      const isReserved = yield* insertReservation(db, { ...reservation, otp_id: null });
      return isReserved ? done('reserved', events, device_key) : undone('serial-taken');
    }),
    /**
     * Stores the certificate and closes the reservation of its `request_id`.
     * @throws {EstuaryError} 500 `RESERVATION_NOT_OPEN` if it is released, already recorded, or for another CA or serial;
     * 500 `SERIAL_TAKEN` if the CA has a certificate with this serial; 403 `DEVICE_NOT_REGISTERED` if the reservation's
     * device was disabled meanwhile
     * @param names the authorized names, if the CA certified others
     */
    recordCertificate: completeWork(
      issued,
      function* (row: CertificateRow, events: Events, names?: string): Write<void> {
        const { request_id, ca, serial } = row;
        // Sent together: no other call of the transaction sees a use whose reservation is closed without a result.
        const takesUse = row.method === 'otp' || row.method === 'jwt';
        const noted = takesUse
          ? db.run`UPDATE otp_use SET issued_at = (SELECT created_at FROM reservation WHERE request_id = ${request_id})
            WHERE request_id = ${request_id}`
          : result(0);
        const [, open] = yield* db.together([noted, close(request_id)]);
        if (open?.ca !== ca || open.label !== row.label || (open.serial !== null && open.serial !== serial))
          throw notOpen(row);
        // A disabled device gets no certificate; its expiry was checked with the reservation.
        if (!(yield* mayIssue(db, open.required_device, labelOf(open), open.created_at)))
          throw forbidden('DEVICE_NOT_REGISTERED', 'device not registered', { detail: 'disabled while the CA signed' });
        const [inserted] = yield* db.together([
          insertRow(row, open.created_at),
          ...(open.queued === 1
            ? [db.run(FORGET, request_id), db.run(MARK_ISSUED, { id: request_id, serial, at: open.created_at })]
            : []),
        ]);
        if (!inserted)
          throw failed('SERIAL_TAKEN', 'the certificate could not be recorded', {
            detail: `${ca} ${serial} is in the store already`,
          });
        if (names !== undefined) yield* db.run(AUTHORIZED_NAMES, { serial, ca, names });
        const ended = open.rescued === 1 ? yield* useRescue(db, request_id) : [];
        return done(undefined, [...events, ...ended], row.device_key);
      },
    ),
    /**
     * Closes a reservation without a certificate and returns the OTP use, exactly once. `false`: it was not open; nothing
     * changed and no event was committed.
     */
    releaseReservation: write(lock.ending, function* (request_id: string, events: Events): Write<boolean> {
      // Sent together, as above.
      const [token, , open] = yield* db.together([
        db.get<{ client_id: string }>`UPDATE otp SET uses = uses - 1 WHERE uses > 0
          AND id = (SELECT otp_id FROM reservation WHERE request_id = ${request_id}) RETURNING client_id`,
        db.run`DELETE FROM otp_use WHERE request_id = ${request_id}
          AND otp_id = (SELECT otp_id FROM reservation WHERE request_id = ${request_id})`,
        close(request_id),
      ]);
      if (open === undefined) return undone(false);
      const { otp_id, device_key } = open;
      const isReturned = otp_id !== null && token !== undefined;
      const returned = isReturned ? [otpReturned({ otp_id, ...token, ca: labelOf(open), request_id })] : [];
      return done(true, [...events, ...returned], device_key);
    }),
  };
}

/**
 * Whether a device may have a certificate of a CA now; always true without a device. Locks the device against changes
 * until the transaction ends.
 */
export function* mayIssue(db: Database, key: string | null, ca: string, now: number): Operation<boolean> {
  if (key === null) return true;
  const device = yield* db.get`SELECT id FROM device WHERE key = ${key} AND enabled = 1
    AND (not_after IS NULL OR not_after > ${now}) AND (ca IS NULL OR ca = ${ca}) FOR SHARE`;
  return device !== undefined;
}

/** Two-phase issuance: the intent before the CA signs, the certificate after. */
export type IssuanceStore = Calls<ReturnType<typeof issuanceReads> & ReturnType<typeof issuanceWrites>>;
