import type { AuditEvent } from '../../audit/event.ts';
import type { OtpFilter, OtpRow, OtpStatus } from '../otp-store.ts';
import type { Page } from '../page.ts';
import { readPosition, toPage, withoutPosition } from '../cursor.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import { type Condition, given, ListSearch } from './search/list-search.ts';
import { OTP_COLUMNS } from '../rows/otp.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/walk.ts';

const LIVE = 'revoked_at IS NULL AND uses < max_uses';

const STATUSES: Readonly<Record<OtpStatus, readonly Condition[]>> = {
  revoked: [{ sql: 'revoked_at IS NOT NULL', index: 'otp_revoked' }],
  consumed: [{ sql: 'revoked_at IS NULL AND uses >= max_uses', index: 'otp_consumed' }],
  active: [{ sql: LIVE, index: 'otp_live' }, { sql: 'expires_at > @now' }],
  expired: [{ sql: LIVE, index: 'otp_live' }, { sql: 'expires_at <= @now' }],
};

/** The reads of one-time passwords. */
export function otpReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const byLookup = db.prepare<[string], OtpRow>(`SELECT ${OTP_COLUMNS} FROM otp WHERE lookup = ?`);
  const byId = db.prepare<[string], OtpRow>(`SELECT ${OTP_COLUMNS} FROM otp WHERE id = ?`);
  const search = new ListSearch<OtpRow & { position: number }>(
    db,
    { table: 'otp', place: 'position', columns: OTP_COLUMNS },
    limits,
  );
  return {
    findOtp: (lookup: string): OtpRow | undefined => byLookup.get(lookup),
    getOtp: (id: string): OtpRow | undefined => byId.get(id),
    listOtps(filter: OtpFilter, now: number): Page<OtpRow> {
      const { client_id, status, limit } = filter;
      const asked = [
        ...given([{ value: client_id, sql: 'client_id = @client_id', index: 'otp_by_client' }]),
        ...(status === undefined ? [] : STATUSES[status]),
      ];
      const after = readPosition('otp', filter);
      const { rows, stopped } = search.find(asked, { ...filter, now }, { ...filter, after });
      return toPage('otp', rows, limit, (row) => row.position, withoutPosition, stopped);
    },
  };
}

/** The writes of one-time passwords; their uses are taken and given back by the issuance writes (otp-uses.ts). */
export function otpWrites(db: Db) {
  const insert = db.prepare<[OtpRow]>(
    `INSERT INTO otp (${OTP_COLUMNS}) VALUES (@id, @lookup, @hash, @client_id, @ca, @created_at, @expires_at, @max_uses,
     @uses, @revoked_at)`,
  );
  const revoke = db.prepare<[number, string]>('UPDATE otp SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');
  const extend = db.prepare<[number, string]>('UPDATE otp SET expires_at = ? WHERE id = ? AND revoked_at IS NULL');
  const exists = db.prepare<[string], { id: string }>('SELECT id FROM otp WHERE id = ?');
  return {
    insertOtp(row: OtpRow, events: readonly AuditEvent[]): Outcome<undefined> {
      insert.run(row);
      return done(undefined, events);
    },
    changeOtp(
      id: string,
      expires_at: number,
      events: readonly AuditEvent[],
    ): Outcome<'changed' | 'revoked' | 'unknown'> {
      if (extend.run(expires_at, id).changes === 1) return done('changed', events);
      return undone(exists.get(id) === undefined ? 'unknown' : 'revoked');
    },
    revokeOtp(id: string, now: number, events: readonly AuditEvent[]): Outcome<boolean> {
      return revoke.run(now, id).changes === 1 ? done(true, events) : undone(exists.get(id) !== undefined);
    },
  };
}
