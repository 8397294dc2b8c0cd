/** Passes for one more renewal of an expired certificate (docs/guides/renewal.md#one-more-renewal). */
import { certificateRescueEnded } from '../audit/applied-events.ts';
import { done, type Events, undone } from './calls/calls.ts';
import type { CertificateRow } from './certificate-store.ts';
import { type Calls, lock, quickRead, write } from './operation.ts';
import { type Database, insertInto, type Operation, result, type Write } from './port.ts';

type CertificateKey = Pick<CertificateRow, 'ca' | 'serial'>;

/** The certificate whose pass a request needs, and how the request is recognized when it is repeated. */
export interface RescuedRequest extends CertificateKey {
  readonly recognition: string;
}

/** A pass whose time has not passed. */
export interface Rescue extends CertificateKey {
  readonly der: Buffer;
  /** The request whose renewal used it; null: it is open. */
  readonly request_id: string | null;
  /** Of that request; null: a restored store does not know it. */
  readonly recognition: string | null;
}

/** A request that has the pass. */
export interface RescueUse {
  readonly request_id: string;
  /** Its certificate is recorded. */
  readonly used: boolean;
  readonly under_way: boolean;
}

export interface RescuedUntil extends CertificateKey {
  readonly until: number;
}

/** A new pass. */
export interface RescueOrder extends RescuedUntil {
  readonly reason: string | null;
  readonly created_at: number;
  /** The administrator, for people. */
  readonly created_by: string;
}

export type RescueResult = 'rescued' | 'revoked' | 'replaced' | 'unknown';

const RESERVED = 'EXISTS (SELECT 1 FROM reservation WHERE reservation.request_id = made.request_id)';
/** Another request has used the pass, or may get a certificate for it without a further check. */
const OTHER = `SELECT recognition FROM rescue_request AS made WHERE serial = @serial AND ca = @ca
  AND request_id <> @request_id AND (request_id = @used OR ${RESERVED}
    OR EXISTS (SELECT 1 FROM request WHERE request.id = made.request_id AND status = 'pending' AND decider = 'ca')) LIMIT 1`;
const USE = `SELECT made.request_id, CASE WHEN rescue.request_id = made.request_id THEN 1 ELSE 0 END AS used,
  CASE WHEN ${RESERVED} THEN 1 ELSE 0 END AS under_way
  FROM rescue_request AS made JOIN rescue ON rescue.serial = made.serial AND rescue.ca = made.ca
  WHERE made.serial = @serial AND made.ca = @ca AND made.recognition = @recognition ORDER BY used DESC, under_way DESC LIMIT 1`;
const ENDED = `UPDATE rescue SET request_id = made.request_id, recognition = made.recognition FROM rescue_request AS made
  WHERE made.request_id = @request_id AND rescue.serial = made.serial AND rescue.ca = made.ca AND rescue.request_id IS NULL
  RETURNING rescue.serial, rescue.ca,
  (SELECT label FROM certificate WHERE certificate.serial = rescue.serial AND certificate.ca = rescue.ca) AS label`;

export function rescueReads(db: Database) {
  return {
    /** The passes of certificates with this serial number, of any CA. */
    findRescues: quickRead(
      (serial: string, now: number) =>
        db.all<Rescue>`SELECT rescue.ca, rescue.serial, der, rescue.request_id, recognition FROM rescue
        JOIN certificate ON certificate.serial = rescue.serial AND certificate.ca = rescue.ca
        WHERE rescue.serial = ${serial} AND until > ${now}`,
    ),
    /** The open passes of certificates with these serial numbers that are not revoked. */
    listRescues: quickRead((serials: readonly string[], now: number): Operation<readonly RescuedUntil[]> =>
      serials.length === 0
        ? result([])
        : db.all<RescuedUntil>`SELECT rescue.ca, rescue.serial, until FROM rescue
            JOIN certificate ON certificate.serial = rescue.serial AND certificate.ca = rescue.ca
            WHERE rescue.serial = ANY(${serials}) AND until > ${now} AND rescue.request_id IS NULL AND revoked_at IS NULL`,
    ),
    /** The request with this recognition that has used the pass or is in progress. */
    findRescueUse: quickRead(function* (request: RescuedRequest): Operation<RescueUse | undefined> {
      const use = yield* db.get<{ request_id: string; used: number; under_way: number }>(USE, request);
      return use && { ...use, used: use.used === 1, under_way: use.under_way === 1 };
    }),
  };
}

/** Gives a pass to a certificate, in place of an earlier one. */
export const putRescue = (db: Database, order: RescueOrder): Operation<number> => db.run(PUT, order);
const PUT = `${insertInto('rescue', 'serial, ca, until, reason, created_at, created_by')} ON CONFLICT (serial, ca) DO UPDATE SET
  until = excluded.until, reason = excluded.reason, created_at = excluded.created_at, created_by = excluded.created_by,
  request_id = NULL, recognition = NULL`;

/** A later certificate of the same holder, or one that was issued in a renewal with this one, has authenticated. */
const REPLACED = `SELECT 1 AS found FROM certificate_use WHERE renewed_serial = @serial AND renewed_ca = @ca
    AND first_used_at IS NOT NULL
  UNION ALL SELECT 1 FROM certificate_use AS own JOIN certificate_use AS later ON later.holder = own.holder
    AND later.issued_at > own.issued_at AND later.first_used_at IS NOT NULL
    WHERE own.serial = @serial AND own.ca = @ca
  LIMIT 1`;

export function rescueWrites(db: Database) {
  return {
    /** Commits the events with `rescued` only. */
    rescueCertificate: write(lock.certificate, function* (order: RescueOrder, events: Events): Write<RescueResult> {
      const { ca, serial, created_at: now } = order;
      const row = yield* db.get<Pick<CertificateRow, 'revoked_at'>>`SELECT revoked_at FROM certificate
          WHERE serial = ${serial} AND ca = ${ca} FOR SHARE`;
      if (row === undefined) return undone('unknown');
      if (row.revoked_at !== null) return undone('revoked');
      if ((yield* db.get(REPLACED, { ca, serial })) !== undefined) return undone('replaced');
      yield* db.run`DELETE FROM rescue WHERE until <= ${now}`;
      yield* putRescue(db, order);
      return done('rescued', events);
    }),
    /** Ends an open pass, or the repeats of the renewal that used it. `false`: the certificate has no pass. */
    endRescue: write(
      lock.certificate,
      function* ({ ca, serial }: CertificateKey, now: number, events: Events): Write<boolean> {
        const ended = yield* db.run`DELETE FROM rescue WHERE serial = ${serial} AND ca = ${ca} AND until > ${now}`;
        return ended === 1 ? done(true, events) : undone(false);
      },
    ),
  };
}

/**
 * Notes that a request needs a pass. `rescue-over`: the pass has ended, or another renewal has used it or is in progress.
 * `repeated`: that is the same request.
 * @param request undefined: it needs none
 */
export function* takeRescue(
  db: Database,
  request_id: string,
  request: RescuedRequest | undefined,
  now: number,
): Operation<'taken' | 'rescue-over' | 'repeated'> {
  if (request === undefined) return 'taken';
  const { ca, serial, recognition } = request;
  const pass = yield* db.get<Pick<Rescue, 'request_id'>>`SELECT request_id FROM rescue
    WHERE serial = ${serial} AND ca = ${ca} AND until > ${now}`;
  if (pass === undefined) return 'rescue-over';
  const used = pass.request_id;
  const other = yield* db.get<{ recognition: string }>(OTHER, { ca, serial, request_id, used });
  if (other?.recognition === recognition) return 'repeated';
  if (other !== undefined || used !== null) return 'rescue-over';
  yield* db.run`INSERT INTO rescue_request (request_id, serial, ca, recognition)
    VALUES (${request_id}, ${serial}, ${ca}, ${recognition}) ON CONFLICT DO NOTHING`;
  return 'taken';
}

/** Uses the pass of a request whose certificate is recorded. @returns the audit event */
export function* useRescue(db: Database, request_id: string): Operation<Events> {
  const ended = yield* db.get<CertificateKey & Pick<CertificateRow, 'label'>>(ENDED, { request_id });
  return ended === undefined ? [] : [certificateRescueEnded({ request_id }, ended, 'used by a renewal')];
}

/** Passes for one more renewal. Requests take them in the transaction of their reservation or in that of the queue. */
export type RescueStore = Calls<ReturnType<typeof rescueReads> & ReturnType<typeof rescueWrites>>;
