import type { AuditEvent } from '../../audit/event.ts';
import type { OtpRow } from '../otp-store.ts';
import type { Page, PageRequest } from '../page.ts';
import { readPosition, toPage, withoutPosition } from './cursor.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from './outcome.ts';

export const OTP_COLUMNS = 'id, lookup, hash, client_id, ca, created_at, expires_at, max_uses, uses, revoked_at';

/** The reads of one-time passwords. */
export function otpReads(db: Db) {
  const byLookup = db.prepare<{ lookup: string; former: string }, OtpRow>(
    `SELECT ${OTP_COLUMNS} FROM otp WHERE lookup IN (@lookup, @former) ORDER BY lookup = @lookup DESC LIMIT 1`,
  );
  const byId = db.prepare<[string], OtpRow>(`SELECT ${OTP_COLUMNS} FROM otp WHERE id = ?`);
  const page = db.prepare<[number, number], OtpRow & { position: number }>(
    `SELECT position, ${OTP_COLUMNS} FROM otp WHERE position > ? ORDER BY position LIMIT ?`,
  );
  return {
    findOtp: (lookup: string, former: string): OtpRow | undefined => byLookup.get({ lookup, former }),
    getOtp: (id: string): OtpRow | undefined => byId.get(id),
    listOtps(request: PageRequest): Page<OtpRow> {
      const rows = page.all(readPosition('otp', request), request.limit + 1);
      return toPage('otp', rows, request.limit, (row) => row.position, withoutPosition);
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
  const exists = db.prepare<[string], { id: string }>('SELECT id FROM otp WHERE id = ?');
  return {
    insertOtp(row: OtpRow, events: readonly AuditEvent[]): Outcome<undefined> {
      insert.run(row);
      return done(undefined, events);
    },
    revokeOtp(id: string, now: number, events: readonly AuditEvent[]): Outcome<boolean> {
      return revoke.run(now, id).changes === 1 ? done(true, events) : undone(exists.get(id) !== undefined);
    },
  };
}
