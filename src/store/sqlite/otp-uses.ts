/** The uses of one-time passwords: taken, given back, and known again by the request that they were taken for (contract §9). */
import type { AuditEvent } from '../../audit/event.ts';
import type { OtpUse, Repeatable } from '../otp-store.ts';
import { otpReturned, type Wanted } from '../rows/otp.ts';
import type { Db } from './database.ts';

const UNDER_WAY = 'EXISTS (SELECT 1 FROM reservation WHERE request_id = otp_use.request_id)';

/** The reads of uses. */
export function otpUseReads(db: Db) {
  const newest = db.prepare<[string], Omit<OtpUse, 'under_way'> & { readonly under_way: number }>(
    `SELECT request_id, otp_id, issued_at, ${UNDER_WAY} AS under_way FROM otp_use WHERE recognition = ?
     ORDER BY taken_at DESC LIMIT 1`,
  );
  return {
    findOtpUse(recognition: string): OtpUse | undefined {
      const use = newest.get(recognition);
      return use === undefined ? undefined : { ...use, under_way: use.under_way === 1 };
    },
  };
}

/**
 * Takes a use of a token that is not revoked and has not expired, and notes for which request; `otp-unusable`: there is none to take.
 * `repeated`: one was taken for the same request, which is under way, or was answered within its window.
 */
export function takeOtpUse(
  db: Db,
): (wanted: Wanted, repeatable: Repeatable | undefined) => 'taken' | 'otp-unusable' | 'repeated' {
  const earlier = db.prepare<{ recognition: string; since: number }, { request_id: string }>(
    `SELECT request_id FROM otp_use WHERE recognition = @recognition
     AND (issued_at > @since OR (issued_at IS NULL AND ${UNDER_WAY})) LIMIT 1`,
  );
  const take = db.prepare<[string, number]>(
    'UPDATE otp SET uses = uses + 1 WHERE id = ? AND revoked_at IS NULL AND expires_at > ? AND uses < max_uses',
  );
  const note = db.prepare<Wanted & { recognition: string }>(
    'INSERT INTO otp_use (request_id, otp_id, recognition, taken_at) VALUES (@request_id, @otp_id, @recognition, @now)',
  );
  return (wanted, repeatable) => {
    const { otp_id, now } = wanted;
    if (repeatable !== undefined && repeatable.retry_window > 0) {
      const { recognition, retry_window } = repeatable;
      if (earlier.get({ recognition, since: now - retry_window }) !== undefined) return 'repeated';
    }
    if (take.run(otp_id, now).changes === 0) return 'otp-unusable';
    if (repeatable !== undefined) note.run({ ...wanted, recognition: repeatable.recognition });
    return 'taken';
  };
}

/** The certificate of a request that took a use was issued. */
export function noteUseIssued(db: Db): (request_id: string, now: number) => void {
  const note = db.prepare<[number, string]>('UPDATE otp_use SET issued_at = ? WHERE request_id = ?');
  return (request_id, now) => void note.run(now, request_id);
}

/** Gives a use back, if there is one; what the audit log says of it. */
export function giveBackOtpUse(db: Db): (otp_id: string | null, ca: string, request_id: string) => AuditEvent[] {
  const giveBack = db.prepare<[string], { client_id: string }>(
    'UPDATE otp SET uses = uses - 1 WHERE id = ? AND uses > 0 RETURNING client_id',
  );
  const forget = db.prepare<[string]>('DELETE FROM otp_use WHERE request_id = ?');
  return (otp_id, ca, request_id) => {
    const token = otp_id === null ? undefined : giveBack.get(otp_id);
    if (otp_id === null || token === undefined) return [];
    forget.run(request_id);
    return [otpReturned({ otp_id, client_id: token.client_id, ca, request_id })];
  };
}
