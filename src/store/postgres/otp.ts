import type { AuditEvent } from '../../audit/event.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { OtpFilter, OtpRow, OtpStatus } from '../otp-store.ts';
import type { Page } from '../page.ts';
import { OTP_COLUMNS } from '../rows/otp.ts';
import { given, listing } from './listing.ts';
import type { Queries } from './queries.ts';

const LIVE = 'revoked_at IS NULL AND uses < max_uses';

const STATUSES: Readonly<Record<OtpStatus, readonly string[]>> = {
  revoked: ['revoked_at IS NOT NULL'],
  consumed: ['revoked_at IS NULL AND uses >= max_uses'],
  active: [LIVE, 'expires_at > @now'],
  expired: [LIVE, 'expires_at <= @now'],
};

/** The reads of one-time passwords. */
export function otpReads(db: Queries) {
  const byLookup = db.prepare<[string], OtpRow>(`SELECT ${OTP_COLUMNS} FROM otp WHERE lookup = ?`);
  const byId = db.prepare<[string], OtpRow>(`SELECT ${OTP_COLUMNS} FROM otp WHERE id = ?`);
  const list = listing<OtpRow>(db, { name: 'otp', table: 'otp', columns: OTP_COLUMNS });
  return {
    findOtp: (lookup: string): Promise<OtpRow | undefined> => byLookup.get(lookup),
    getOtp: (id: string): Promise<OtpRow | undefined> => byId.get(id),
    listOtps: (filter: OtpFilter, now: number): Promise<Page<OtpRow>> =>
      list(
        [
          ...given([{ value: filter.client_id, sql: 'client_id = @client_id' }]),
          ...(filter.status === undefined ? [] : STATUSES[filter.status]),
        ],
        { ...filter, now },
        filter,
        (row) => row,
      ),
  };
}

/** The writes of one-time passwords; their uses are taken and given back by the issuance writes (otp-uses.ts). */
export function otpWrites(db: Queries) {
  const insert = db.prepare<OtpRow>(
    `INSERT INTO otp (${OTP_COLUMNS}) VALUES (@id, @lookup, @hash, @client_id, @ca, @created_at, @expires_at, @max_uses,
     @uses, @revoked_at)`,
  );
  const revoke = db.prepare<[number, string]>('UPDATE otp SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');
  const extend = db.prepare<[number, string]>('UPDATE otp SET expires_at = ? WHERE id = ? AND revoked_at IS NULL');
  const exists = db.prepare<[string], { id: string }>('SELECT id FROM otp WHERE id = ?');
  return {
    async insertOtp(row: OtpRow, events: readonly AuditEvent[]): Promise<Outcome<undefined>> {
      await insert.run(row);
      return done(undefined, events);
    },
    async changeOtp(
      id: string,
      expires_at: number,
      events: readonly AuditEvent[],
    ): Promise<Outcome<'changed' | 'revoked' | 'unknown'>> {
      if ((await extend.run(expires_at, id)) === 1) return done('changed', events);
      return undone((await exists.get(id)) === undefined ? 'unknown' : 'revoked');
    },
    async revokeOtp(id: string, now: number, events: readonly AuditEvent[]): Promise<Outcome<boolean>> {
      if ((await revoke.run(now, id)) === 1) return done(true, events);
      return undone((await exists.get(id)) !== undefined);
    },
  };
}
