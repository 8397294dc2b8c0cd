/** One-time passwords; their uses are taken, returned, and recognized by their request. */
import { tokenEvent } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import { done, type Events, undone } from './calls/calls.ts';
import { fold, type Page, type PageRequest } from './page.ts';
import { type Calls, lock, quickRead, slowRead, write } from './operation.ts';
import { type Condition, type Database, given, insertInto, type Operation, someContains, type Write } from './port.ts';
import { inStatus } from './request-state.ts';

export interface OtpRow {
  readonly id: string;
  /** The keyed hash that finds the row, see lookup-key-file.ts; unique. */
  readonly lookup: string;
  /** The encoded hash of the token ($argon2id$…, $2b$…, or hmac-sha256:…). */
  readonly hash: string;
  readonly client_id: string;
  /** The label that the token is limited to, or null. */
  readonly ca: string | null;
  readonly created_at: number;
  readonly expires_at: number;
  readonly max_uses: number;
  readonly uses: number;
  readonly revoked_at: number | null;
}

export type OtpStatus = 'active' | 'consumed' | 'expired' | 'revoked';

/** All given criteria must match. */
export interface OtpFilter extends PageRequest {
  readonly client_id?: string | undefined;
  readonly status?: OtpStatus | undefined;
  /** A part of the client_id, ignoring case, or the ID. */
  readonly search?: string | undefined;
  /** Only rows of these labels. */
  readonly labels?: readonly string[] | undefined;
}

/** Recognizes a repeat of the request that takes a use, and limits for how long. */
export interface Repeatable {
  /** Equal for the same request with the same token. */
  readonly recognition: string;
  /** Milliseconds after issuance in which a repeat takes no further use. */
  readonly retry_window: number;
}

/** A use that was taken and not returned. */
export interface OtpUse {
  /** Of the request that took it. */
  readonly request_id: string;
  readonly otp_id: string;
  /** When the certificate was issued; null: not yet, or never. */
  readonly issued_at: number | null;
  /** Whether a process is working on that request. */
  readonly under_way: boolean;
}

export const OTP_COLUMNS = 'id, lookup, hash, client_id, ca, created_at, expires_at, max_uses, uses, revoked_at';

/** Rows of single-use JWTs, which lists of one-time passwords omit. */
export const OF_JWT = "id LIKE 'jwt:%'";
export const isJwt = (id: string): boolean => id.startsWith('jwt:');

const LIVE = 'revoked_at IS NULL AND uses < max_uses';

const STATUSES: Readonly<Record<OtpStatus, readonly Condition[]>> = {
  revoked: [{ sql: 'revoked_at IS NOT NULL', index: 'otp_revoked' }],
  consumed: [{ sql: 'revoked_at IS NULL AND uses >= max_uses', index: 'otp_consumed' }],
  active: [{ sql: LIVE, index: 'otp_live' }, { sql: 'expires_at > @now' }],
  expired: [{ sql: LIVE, index: 'otp_live' }, { sql: 'expires_at <= @now' }],
};

const UNDER_WAY = 'EXISTS (SELECT 1 FROM reservation WHERE reservation.request_id = otp_use.request_id)';

const BY_ID = `SELECT ${OTP_COLUMNS} FROM otp WHERE id = ?`;
const BY_LOOKUP = `SELECT ${OTP_COLUMNS} FROM otp WHERE lookup = ?`;
const ADD = insertInto('otp', OTP_COLUMNS);
const ADMIT = `${ADD} ON CONFLICT (id) DO NOTHING`;
const NEWEST_USE = `SELECT request_id, otp_id, issued_at, CASE WHEN ${UNDER_WAY} THEN 1 ELSE 0 END AS under_way FROM otp_use
  WHERE recognition = ? ORDER BY taken_at DESC LIMIT 1`;

export function otpReads(db: Database) {
  const list = db.list<OtpRow>({ name: 'otp', table: 'otp', columns: OTP_COLUMNS });
  return {
    findOtp: quickRead((lookup: string) => db.get<OtpRow>(BY_LOOKUP, lookup)),
    getOtp: quickRead((id: string) => db.get<OtpRow>(BY_ID, id)),
    /** In order of creation. */
    listOtps: slowRead((filter: OtpFilter, now: number): Operation<Page<OtpRow>> => {
      const { client_id, status, search, labels } = filter;
      const conditions = [
        ...given([
          { value: labels, sql: 'ca = ANY(@labels)' },
          { value: client_id, sql: 'client_id = @client_id', index: 'otp_by_client' },
        ]),
        ...(status === undefined ? [] : STATUSES[status]),
        ...given([{ value: search, sql: someContains(db.dialect, ['client_id'], 'id = @search') }]),
        { sql: `NOT ${OF_JWT}` },
      ];
      return list(conditions, { ...filter, search: fold(search), now }, filter, (row) => row);
    }),
    /** The latest use by the request with this recognition. */
    findOtpUse: quickRead(function* (recognition: string): Operation<OtpUse | undefined> {
      const use = yield* db.get<Omit<OtpUse, 'under_way'> & { under_way: number }>(NEWEST_USE, recognition);
      return use === undefined ? undefined : { ...use, under_way: use.under_way === 1 };
    }),
  };
}

const tokenOf = ({ id }: OtpRow) => lock.token(id);

export function otpWrites(db: Database) {
  return {
    insertOtp: write(tokenOf, function* (row: OtpRow, events: Events): Write<void> {
      yield* db.run(ADD, row);
      return done(undefined, events);
    }),
    /** Adds the row of a single-use JWT, unless it exists. @returns the row in the store */
    admitToken: write(tokenOf, function* (row: OtpRow): Write<OtpRow> {
      yield* db.run(ADMIT, row);
      return done((yield* db.get<OtpRow>(BY_ID, row.id)) ?? row, []);
    }),
    /** Changes the expiry. The events are committed with `changed` only. */
    changeOtp: write(lock.token, function* (id: string, expires_at: number, events: Events): Write<
      'changed' | 'revoked' | 'unknown'
    > {
      if ((yield* db.run`UPDATE otp SET expires_at = ${expires_at} WHERE id = ${id} AND revoked_at IS NULL`) === 1)
        return done('changed', events);
      return undone((yield* db.get(BY_ID, id)) === undefined ? 'unknown' : 'revoked');
    }),
    /** Revokes the token. `false`: unknown. Revoking it again is not an error, but commits no second event. */
    revokeOtp: write(lock.token, function* (id: string, now: number, events: Events): Write<boolean> {
      if ((yield* db.run`UPDATE otp SET revoked_at = ${now} WHERE id = ${id} AND revoked_at IS NULL`) === 1)
        return done(true, events);
      return undone((yield* db.get(BY_ID, id)) !== undefined);
    }),
  };
}

/** Whether a token is live: usable, or needed to poll a queued request. Single-use JWTs have no lookup. */
export function* hasLiveTokens(db: Database, now: number): Operation<boolean> {
  const live = yield* db.get(
    `SELECT id FROM otp WHERE NOT ${OF_JWT} AND revoked_at IS NULL AND expires_at > @now AND (uses < max_uses
     OR EXISTS (SELECT 1 FROM request WHERE otp_id = otp.id AND ${inStatus(['pending', 'approved'])})) LIMIT 1`,
    { now },
  );
  return live !== undefined;
}

/** A use to take. */
interface Wanted {
  /** null: the request takes none. */
  readonly otp_id: string | null;
  readonly request_id: string;
  readonly now: number;
}

const EARLIER_USE = `SELECT request_id FROM otp_use WHERE recognition = @recognition
  AND (issued_at > @since OR (issued_at IS NULL AND ${UNDER_WAY}))
  AND NOT EXISTS (SELECT 1 FROM certificate WHERE certificate.request_id = otp_use.request_id AND not_after < @now) LIMIT 1`;

/**
 * Takes a use of a token that is neither revoked nor expired, and records its request. `otp-unusable`: no use left.
 * `repeated`: the same request has a use and is in progress, or got a certificate within its window that has not
 * expired.
 */
export function* takeOtpUse(
  db: Database,
  { otp_id, request_id, now }: Wanted,
  repeatable?: Repeatable,
): Operation<'taken' | 'otp-unusable' | 'repeated'> {
  if (otp_id === null) return 'taken';
  if (repeatable !== undefined && repeatable.retry_window > 0) {
    const { recognition, retry_window } = repeatable;
    const earlier = yield* db.get(EARLIER_USE, { recognition, since: now - retry_window, now });
    if (earlier !== undefined) return 'repeated';
  }
  const taken = yield* db.run`UPDATE otp SET uses = uses + 1
    WHERE id = ${otp_id} AND revoked_at IS NULL AND expires_at > ${now} AND uses < max_uses`;
  if (taken === 0) return 'otp-unusable';
  if (repeatable !== undefined)
    yield* db.run`INSERT INTO otp_use (request_id, otp_id, recognition, taken_at)
      VALUES (${request_id}, ${otp_id}, ${repeatable.recognition}, ${now})`;
  return 'taken';
}

/** Returns a use, if any. @returns the audit event */
export function* giveBackOtpUse(
  db: Database,
  otp_id: string | null,
  ca: string,
  request_id: string,
): Operation<Events> {
  if (otp_id === null) return [];
  const token = yield* db.get<{ client_id: string }>`UPDATE otp SET uses = uses - 1
    WHERE id = ${otp_id} AND uses > 0 RETURNING client_id`;
  if (token === undefined) return [];
  yield* db.run`DELETE FROM otp_use WHERE request_id = ${request_id}`;
  return [otpReturned({ otp_id, client_id: token.client_id, ca, request_id })];
}

interface Returned {
  readonly otp_id: string;
  readonly client_id: string;
  readonly ca: string;
  readonly request_id: string;
}

export const otpReturned = ({ otp_id: id, client_id, ca, request_id }: Returned): AuditEvent =>
  tokenEvent({ type: 'otp.returned', token: { id, client_id, ca } }, { request_id });

/** The one-time passwords. Their uses are taken in the transaction of a reservation or a queued request. */
export type OtpStore = Calls<ReturnType<typeof otpReads> & ReturnType<typeof otpWrites>>;
