import type { AuditEvent } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';

export interface OtpRow {
  readonly id: string;
  /** The keyed hash that finds the row, see token-lookup.ts; unique. */
  readonly lookup: string;
  /** The encoded hash of the token ($argon2id$…, $2b$…, or hmac-sha256:…). */
  readonly hash: string;
  readonly client_id: string;
  /** The label the token is limited to, or null. */
  readonly ca: string | null;
  readonly created_at: number;
  readonly expires_at: number;
  readonly max_uses: number;
  readonly uses: number;
  readonly revoked_at: number | null;
}

export type OtpStatus = 'active' | 'consumed' | 'expired' | 'revoked';

/** Which tokens; all that is given holds. */
export interface OtpFilter extends PageRequest {
  readonly client_id?: string | undefined;
  readonly status?: OtpStatus | undefined;
  /** Rows of these labels only. */
  readonly labels?: readonly string[] | undefined;
}

/** By what the request that takes a use is known when it is made again, and for how long it is answered then. */
export interface Repeatable {
  /** The same for the same request of the same token. */
  readonly recognition: string;
  /** Milliseconds from its issue in which a repeat takes no further use. */
  readonly retry_window: number;
}

/** A use that was taken. One that went back is gone. */
export interface OtpUse {
  /** Of the request that it was taken for. */
  readonly request_id: string;
  readonly otp_id: string;
  /** When the certificate was issued; null: not yet, or never. */
  readonly issued_at: number | null;
  /** Whether a process is at work on that request. */
  readonly under_way: boolean;
}

/** The one-time passwords in the store. Their uses are taken with a reservation or a queued request, in its transaction. */
export interface OtpStore {
  insertOtp(row: OtpRow, events: readonly AuditEvent[]): Promise<void>;
  /** Adds the row of a JWT that counts once, unless it exists. @returns the row in the store */
  admitToken(row: OtpRow): Promise<OtpRow>;
  findOtp(lookup: string): Promise<OtpRow | undefined>;
  getOtp(id: string): Promise<OtpRow | undefined>;
  /** The newest use that was taken for the request with this recognition. */
  findOtpUse(recognition: string): Promise<OtpUse | undefined>;
  /** In the order in which they were made. */
  listOtps(filter: OtpFilter, now: number): Promise<Page<OtpRow>>;
  /** Changes when it ends. The events are committed with `changed` only. */
  changeOtp(id: string, expires_at: number, events: readonly AuditEvent[]): Promise<'changed' | 'revoked' | 'unknown'>;
  /** Marks the token dead. `false`: no such token. Revoking twice is not an error, but commits no second event. */
  revokeOtp(id: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;
}
