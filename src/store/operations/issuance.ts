/** The two phases of an issuance (reserve, record), and the release. */
import { type EstuaryError, failed, forbidden } from '../../errors.ts';
import { done, undone } from '../calls/calls.ts';
import type { CertificateRow } from '../certificate-store.ts';
import type { Reservation } from '../issuance-store.ts';
import { goes, mayGo, restsIn, TRANSITIONS } from '../request-state.ts';
import { insertCertificate } from './certificates.ts';
import { clearFailures } from './lockout.ts';
import { otpReturned, takeOtpUse } from './otp.ts';
import { type Database, type Operation, result, type Reads, type Writes } from './port.ts';

export const RESERVATION_COLUMNS =
  'request_id, instance, ca, label, serial, requester, operation, subject, spki_sha256, otp_id, device_key, required_device, created_at';

type Closed = Pick<Reservation, 'ca' | 'label' | 'serial' | 'otp_id' | 'device_key' | 'required_device' | 'created_at'>;

/** Where the certificate was requested. */
const labelOf = ({ ca, label }: Pick<Reservation, 'ca' | 'label'>): string => label ?? ca;

type Recorded = Pick<CertificateRow, 'request_id' | 'ca' | 'serial'>;

const notOpen = ({ request_id, ca, serial }: Recorded): EstuaryError =>
  failed('RESERVATION_NOT_OPEN', 'the certificate could not be recorded', {
    detail: `no open reservation of request ${request_id} for ${ca} ${serial}`,
  });

export function issuanceReads(db: Database) {
  const all = db.prepare<[], Reservation>(`SELECT ${RESERVATION_COLUMNS} FROM reservation ORDER BY position`);
  const ofInstance = db.prepare<[string], Reservation>(
    `SELECT ${RESERVATION_COLUMNS} FROM reservation WHERE instance = ? ORDER BY position`,
  );
  return {
    openReservations: (instance) => (instance === undefined ? all.all() : ofInstance.all(instance)),
  } satisfies Reads;
}

export function insertReservation(db: Database): (reservation: Reservation) => Operation<number> {
  const insert = db.prepare<unknown[]>(
    `INSERT INTO reservation (${RESERVATION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (r) => {
    const names = [r.serial, r.requester, r.operation, r.subject, r.spki_sha256];
    const devices = [r.device_key, r.required_device];
    return insert.run(r.request_id, r.instance, r.ca, r.label, ...names, r.otp_id, ...devices, r.created_at);
  };
}

export function issuanceWrites(db: Database) {
  const takeUse = takeOtpUse(db);
  const claimable = db.prepare<[string], { id: string }>(
    `SELECT id FROM request WHERE id = ? AND ${restsIn(...TRANSITIONS.issue.from)} ${db.dialect.forUpdate}`,
  );
  // A CA that answers at once leaves no queued request, unless the requester was told that it is pending.
  const forget = db.prepare<[string]>(
    `DELETE FROM request WHERE id = ? AND ${mayGo('withdraw')} AND reference IS NULL
     AND polled_at IS NULL AND decided_at IS NULL`,
  );
  const markIssued = db.prepare<{ id: string; serial: string; at: number }>(
    `UPDATE request SET ${goes('issue')}, serial = @serial, changed_at = @at
     WHERE id = @id AND ${mayGo('issue')}`,
  );
  const serialTaken = db.prepare<{ ca: string; serial: string }, { serial: string }>(
    `SELECT serial FROM reservation WHERE ca = @ca AND serial = @serial
     UNION ALL SELECT serial FROM certificate WHERE ca = @ca AND serial = @serial`,
  );
  const insert = insertReservation(db);
  const mayIssue = mayIssueTo(db);
  const close = db.prepare<[string], Closed>(
    'DELETE FROM reservation WHERE request_id = ? RETURNING ca, label, serial, otp_id, device_key, required_device, created_at',
  );
  const ofReservation = '(SELECT otp_id FROM reservation WHERE request_id = ?)';
  const noteIssued = db.prepare<[string, string]>(
    'UPDATE otp_use SET issued_at = (SELECT created_at FROM reservation WHERE request_id = ?) WHERE request_id = ?',
  );
  const giveBack = db.prepare<[string], { client_id: string }>(
    `UPDATE otp SET uses = uses - 1 WHERE id = ${ofReservation} AND uses > 0 RETURNING client_id`,
  );
  const forgetUse = db.prepare<[string, string]>(
    `DELETE FROM otp_use WHERE request_id = ? AND otp_id = ${ofReservation}`,
  );
  const insertRow = insertCertificate(db);
  const clear = clearFailures(db);

  function* isTaken({ ca, serial }: Reservation): Operation<boolean> {
    return serial !== null && (yield* serialTaken.get({ ca, serial })) !== undefined;
  }

  return {
    *reserve(reservation, events, repeatable) {
      const { otp_id, device_key, required_device, request_id, created_at } = reservation;
      const [may, taken] = yield* db.together([
        mayIssue(required_device, labelOf(reservation), created_at),
        isTaken(reservation),
      ]);
      if (!may) return undone('device-refused');
      if (taken) return undone('serial-taken');
      const use = otp_id === null ? 'taken' : yield* takeUse({ otp_id, request_id, now: created_at }, repeatable);
      if (use !== 'taken') return undone(use);
      yield* insert(reservation);
      return done('reserved', events, device_key);
    },
    *claimRequest(reservation, events) {
      const { request_id, device_key, required_device, created_at } = reservation;
      const [request, may, taken] = yield* db.together([
        claimable.get(request_id),
        mayIssue(required_device, labelOf(reservation), created_at),
        isTaken(reservation),
      ]);
      if (request === undefined) return undone('request-taken');
      if (!may) return undone('device-refused');
      if (taken) return undone('serial-taken');
      yield* insert({ ...reservation, otp_id: null });
      return done('reserved', events, device_key);
    },
    *recordCertificate(row, events, succeeded = []) {
      const { request_id, ca, serial } = row;
      // Sent together: no other call of the transaction sees a use whose reservation is closed without a result.
      const takesUse = row.method === 'otp' || row.method === 'jwt';
      const noted = takesUse ? noteIssued.run(request_id, request_id) : result(0);
      const [, open] = yield* db.together([noted, close.get(request_id)]);
      if (open?.ca !== ca || open.label !== row.label || (open.serial !== null && open.serial !== serial))
        throw notOpen(row);
      // A disabled device gets no certificate; its expiry was checked with the reservation.
      if (!(yield* mayIssue(open.required_device, labelOf(open), open.created_at)))
        throw forbidden('DEVICE_NOT_REGISTERED', 'device not registered', { detail: 'disabled while the CA signed' });
      const [inserted] = yield* db.together([
        insertRow(row, open.created_at),
        forget.run(request_id),
        markIssued.run({ id: request_id, serial, at: open.created_at }),
        clear(succeeded),
      ]);
      if (!inserted)
        throw failed('SERIAL_TAKEN', 'the certificate could not be recorded', {
          detail: `${ca} ${serial} is in the store already`,
        });
      return done(undefined, events, row.device_key);
    },
    *releaseReservation(request_id, events) {
      // Sent together, as above.
      const [token, , open] = yield* db.together([
        giveBack.get(request_id),
        forgetUse.run(request_id, request_id),
        close.get(request_id),
      ]);
      if (open === undefined) return undone(false);
      const { otp_id, device_key } = open;
      const isReturned = otp_id !== null && token !== undefined;
      const returned = isReturned ? [otpReturned({ otp_id, ...token, ca: labelOf(open), request_id })] : [];
      return done(true, [...events, ...returned], device_key);
    },
  } satisfies Writes;
}

/**
 * Whether a device may have a certificate of a CA now; always true without a device. Locks the device against changes
 * until the transaction ends.
 */
export function mayIssueTo(
  db: Database,
): (required_device: string | null, ca: string, now: number) => Operation<boolean> {
  const admitted = db.prepare<{ key: string; ca: string; now: number }, { id: string }>(
    `SELECT id FROM device WHERE key = @key AND enabled = 1 AND (not_after IS NULL OR not_after > @now)
     AND (ca IS NULL OR ca = @ca) ${db.dialect.forShare}`,
  );
  const NO_DEVICE = result(true);
  return (key, ca, now) => (key === null ? NO_DEVICE : isThere(admitted.get({ key, ca, now })));
}

function* isThere(row: Operation<object | undefined>): Operation<boolean> {
  return (yield* row) !== undefined;
}
