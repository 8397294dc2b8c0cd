/** One-time passwords as rows, and what the audit log says of their uses. */
import type { AuditEvent } from '../../audit/event.ts';

export const OTP_COLUMNS = 'id, lookup, hash, client_id, ca, created_at, expires_at, max_uses, uses, revoked_at';

/** A use that is wanted. */
export interface Wanted {
  readonly otp_id: string;
  readonly request_id: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Of a use that went back. */
export const otpReturned = ({
  otp_id,
  client_id,
  ca,
  request_id,
}: {
  readonly otp_id: string;
  readonly client_id: string;
  readonly ca: string;
  readonly request_id: string;
}): AuditEvent => ({
  type: 'otp.returned',
  outcome: 'success',
  subject: client_id,
  ca,
  request_id,
  detail: `token ${otp_id}`,
});
