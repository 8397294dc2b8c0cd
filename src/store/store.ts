/**
 * The store in the domain's words. Every mutating call is one transaction that also commits the audit events given to
 * it: either both are durable when the promise resolves, or neither happened. Times are milliseconds since the epoch,
 * serials lower-case hex.
 *
 * Nothing here blocks the event loop: the implementation runs the database in a thread of its own and commits the
 * calls that wait together in one transaction (group commit).
 */
import type { AuditEvent, AuditRecord, AuditType } from '../audit/event.ts';

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

// --- one-time passwords ----------------------------------------------------------------------------------------

export interface OtpRow {
  readonly id: string;
  /** The public part of the token that finds its row; unique. */
  readonly selector: string;
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

// --- lockout ---------------------------------------------------------------------------------------------------

export interface LockoutPolicy {
  readonly max_failures: number;
  /** Seconds. */
  readonly failure_window: number;
  /** Seconds. */
  readonly lockout_duration: number;
}

export interface LockoutRow {
  readonly key: string;
  readonly scope: 'address' | 'username' | 'identification';
  readonly failures: number;
  readonly locked_until: number;
}

// --- certificates ----------------------------------------------------------------------------------------------

export type CertificateStatus = 'valid' | 'revoked' | 'expired';

export interface CertificateRow {
  readonly ca: string;
  readonly serial: string;
  /** RFC 4514. */
  readonly subject: string;
  /** `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`. */
  readonly sans: readonly string[];
  readonly not_before: number;
  readonly not_after: number;
  readonly der: Buffer;
  /** Hex SHA-256 of `der`. */
  readonly fingerprint_sha256: string;
  readonly requester: string;
  readonly method: string;
  readonly request_id: string;
  readonly revoked_at: number | null;
  /** RFC 5280 CRLReason name. */
  readonly reason: string | null;
}

export interface CertificateFilter extends PageRequest {
  readonly ca?: string | undefined;
  readonly subject?: string | undefined;
  readonly serial?: string | undefined;
  readonly status?: CertificateStatus | undefined;
  readonly expires_before?: number | undefined;
}

/** The intent to issue, committed before the CA signs. */
export interface Reservation {
  readonly request_id: string;
  readonly ca: string;
  /** null where the CA chooses the serial (a remote PKI). */
  readonly serial: string | null;
  readonly requester: string;
  readonly operation: string;
  readonly subject: string;
  /** Hex SHA-256 of the requested SubjectPublicKeyInfo; null where the key does not exist yet. */
  readonly spki_sha256: string | null;
  /** The OTP of which one use is taken, in the same transaction. */
  readonly otp_id: string | null;
  readonly created_at: number;
}

export type ReserveResult = 'reserved' | 'otp-unusable' | 'serial-taken';

export interface Store {
  // one-time passwords
  insertOtp(row: OtpRow, events: readonly AuditEvent[]): Promise<'inserted' | 'selector-taken'>;
  findOtpBySelector(selector: string): Promise<OtpRow | undefined>;
  getOtp(id: string): Promise<OtpRow | undefined>;
  listOtps(page: PageRequest): Promise<Page<OtpRow>>;
  /** Marks the token dead. `false`: no such token. Revoking twice is not an error. */
  revokeOtp(id: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;

  // lockout: keys are `address:…` / `username:…`
  /** The latest end of a lockout in force for any of the keys. */
  lockedUntil(keys: readonly string[], now: number): Promise<number | undefined>;
  /** Counts one failure on each key; more than `max_failures` within the window starts a lockout (and audits it). */
  recordFailure(
    keys: readonly string[],
    policy: LockoutPolicy,
    now: number,
    events: readonly AuditEvent[],
  ): Promise<void>;
  clearFailures(keys: readonly string[]): Promise<void>;
  listLockouts(page: PageRequest, now: number): Promise<Page<LockoutRow>>;
  deleteLockout(key: string, events: readonly AuditEvent[]): Promise<boolean>;

  // issuance
  /** Takes the OTP use (if any) and commits the intent. */
  reserve(reservation: Reservation, events: readonly AuditEvent[]): Promise<ReserveResult>;
  /** Stores the certificate and closes its reservation. */
  recordCertificate(row: CertificateRow, events: readonly AuditEvent[]): Promise<void>;
  /** Closes a reservation without a certificate and gives the OTP use back. */
  releaseReservation(request_id: string, reason: string, events: readonly AuditEvent[]): Promise<void>;
  openReservations(): Promise<readonly Reservation[]>;

  // certificates
  getCertificates(serial: string, ca?: string): Promise<readonly CertificateRow[]>;
  findCertificateByFingerprint(fingerprint_sha256: string): Promise<CertificateRow | undefined>;
  listCertificates(filter: CertificateFilter, now: number): Promise<Page<CertificateRow>>;

  // audit
  /** Commits events that belong to no other change. */
  audit(events: readonly AuditEvent[]): Promise<void>;
  listAudit(
    filter: PageRequest & { since?: number | undefined; type?: AuditType | undefined },
  ): Promise<Page<AuditRecord>>;

  /** Reopens the audit file (SIGHUP, after a rotation). */
  reopenAuditFile(): Promise<void>;
  /** Throws {@link EstuaryError} 503 when the database or the audit file cannot be written. */
  checkWritable(): Promise<void>;
  close(): Promise<void>;
}
