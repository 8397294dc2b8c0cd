import type { AuditEvent } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';

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

/** The one-time passwords. Their uses are taken in the transaction of a reservation or a queued request. */
export interface OtpStore {
  insertOtp(row: OtpRow, events: readonly AuditEvent[]): Promise<void>;
  /** Adds the row of a single-use JWT, unless it exists. @returns the row in the store */
  admitToken(row: OtpRow): Promise<OtpRow>;
  findOtp(lookup: string): Promise<OtpRow | undefined>;
  getOtp(id: string): Promise<OtpRow | undefined>;
  /** The latest use by the request with this recognition. */
  findOtpUse(recognition: string): Promise<OtpUse | undefined>;
  /** In order of creation. */
  listOtps(filter: OtpFilter, now: number): Promise<Page<OtpRow>>;
  /** Changes the expiry. The events are committed with `changed` only. */
  changeOtp(id: string, expires_at: number, events: readonly AuditEvent[]): Promise<'changed' | 'revoked' | 'unknown'>;
  /** Revokes the token. `false`: unknown. Revoking it again is not an error, but commits no second event. */
  revokeOtp(id: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;
}
