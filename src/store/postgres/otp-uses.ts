/** The uses of one-time passwords: taken, given back, and known again by the request that they were taken for (contract §9). */
import type { AuditEvent } from '../../audit/event.ts';
import type { OtpUse, Repeatable } from '../otp-store.ts';
import { otpReturned, type Wanted } from '../rows/otp.ts';
import type { Queries } from './queries.ts';

const UNDER_WAY = 'EXISTS (SELECT 1 FROM reservation WHERE reservation.request_id = otp_use.request_id)';

/** The reads of uses. */
export function otpUseReads(db: Queries) {
  const newest = db.prepare<[string], OtpUse>(
    `SELECT request_id, otp_id, issued_at, ${UNDER_WAY} AS under_way FROM otp_use WHERE recognition = ?
     ORDER BY taken_at DESC LIMIT 1`,
  );
  return { findOtpUse: (recognition: string): Promise<OtpUse | undefined> => newest.get(recognition) };
}

/**
 * Takes a use of a token that is not revoked and has not expired, and notes for which request; `otp-unusable`: there is none to take.
 * `repeated`: one was taken for the same request, which is under way, or was answered within its window.
 */
export function takeOtpUse(
  db: Queries,
): (wanted: Wanted, repeatable: Repeatable | undefined) => Promise<'taken' | 'otp-unusable' | 'repeated'> {
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
  return async (wanted, repeatable) => {
    const { otp_id, now } = wanted;
    if (repeatable !== undefined && repeatable.retry_window > 0) {
      const { recognition, retry_window } = repeatable;
      if ((await earlier.get({ recognition, since: now - retry_window })) !== undefined) return 'repeated';
    }
    if ((await take.run(otp_id, now)) === 0) return 'otp-unusable';
    if (repeatable !== undefined) await note.run({ ...wanted, recognition: repeatable.recognition });
    return 'taken';
  };
}

/** Gives a use back, if there is one; what the audit log says of it. */
export function giveBackOtpUse(
  db: Queries,
): (otp_id: string | null, ca: string, request_id: string) => Promise<readonly AuditEvent[]> {
  const giveBack = db.prepare<[string], { client_id: string }>(
    'UPDATE otp SET uses = uses - 1 WHERE id = ? AND uses > 0 RETURNING client_id',
  );
  const forget = db.prepare<[string]>('DELETE FROM otp_use WHERE request_id = ?');
  return async (otp_id, ca, request_id) => {
    const token = otp_id === null ? undefined : await giveBack.get(otp_id);
    if (otp_id === null || token === undefined) return [];
    await forget.run(request_id);
    return [otpReturned({ otp_id, client_id: token.client_id, ca, request_id })];
  };
}
