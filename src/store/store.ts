/**
 * The store in the domain's words. Every mutating call is one transaction that also commits the audit events given to
 * it: either both are durable when the promise resolves, or neither happened. Times are milliseconds since the epoch,
 * serials lower-case hex.
 *
 * Nothing here blocks the event loop: the implementation runs the database in a thread of its own and commits the
 * calls that wait together in one transaction (group commit).
 *
 * Every call can reject with {@link EstuaryError} 503 (`STORE_UNAVAILABLE`, `AUDIT_UNAVAILABLE`, `AUDIT_TAMPERED`) or
 * 500 (`STORE_FAILED`); then nothing of it happened, unless the store's thread died over it: then it may have.
 * Lists reject with 400 `CURSOR_INVALID` for a cursor that they did not give out.
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
  /** Hex of its subjectKeyIdentifier extension. */
  readonly key_identifier: string | null;
  /** The key archive's identifier of the private key, where it was generated and archived. */
  readonly archived_key_id: string | null;
  readonly revoked_at: number | null;
  /** RFC 5280 CRLReason name. */
  readonly reason: string | null;
  readonly invalidity_date: number | null;
}

export interface CertificateFilter extends PageRequest {
  readonly ca?: string | undefined;
  /** A part of the subject, upper and lower case alike. */
  readonly subject?: string | undefined;
  readonly serial?: string | undefined;
  readonly status?: CertificateStatus | undefined;
  readonly expires_before?: number | undefined;
}

export interface Revocation {
  readonly ca: string;
  readonly serial: string;
  readonly revoked_at: number;
  /** RFC 5280 CRLReason name. */
  readonly reason: string;
  readonly invalidity_date: number | null;
}

export type RevokeResult = 'revoked' | 'already-revoked' | 'unknown';

// --- presented CA certificates -----------------------------------------------------------------------------------

/** A CA certificate that a client sent in a handshake. */
export interface PresentedIntermediate {
  /** Hex SHA-256 of `der`. */
  readonly fingerprint: string;
  readonly der: Buffer;
}

/** What led from a client's certificate towards an anchor, and was nobody's but the client's to know. */
export interface PresentedPath {
  /** Hex SHA-256 of the client's certificate. */
  readonly leaf: string;
  /** The client's issuer first. */
  readonly intermediates: readonly PresentedIntermediate[];
}

// --- revocation lists ------------------------------------------------------------------------------------------

/** A CA's latest CRL. */
export interface CrlRow {
  readonly ca: string;
  readonly number: number;
  readonly this_update: number;
  readonly next_update: number;
  readonly der: Buffer;
}

export interface RevokedFilter {
  readonly ca: string;
  /** Revoked at this time or before. */
  readonly revoked_until: number;
  /** Not expired at this time. */
  readonly valid_at: number;
  /** The position of the last row of the page before; 0 for the first. */
  readonly after: number;
  readonly limit: number;
}

export interface RevokedRow {
  readonly position: number;
  readonly serial: string;
  readonly revoked_at: number;
  /** RFC 5280 CRLReason name. */
  readonly reason: string;
  readonly invalidity_date: number | null;
}

/** The intent to issue, committed before the CA signs. */
export interface Reservation {
  readonly request_id: string;
  /** The process that is at work on it: only a dead one's reservations may be reconciled. */
  readonly instance: string;
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

/** `reserved`, or why not; `request-taken`: it is not approved (any more), or its issuance is under way. */
export type ClaimResult = 'reserved' | 'request-taken' | 'serial-taken';

// --- queued requests -------------------------------------------------------------------------------------------

export const REQUEST_STATUSES = ['pending', 'approved', 'issued', 'rejected', 'failed', 'expired'] as const;
export type RequestStatus = (typeof REQUEST_STATUSES)[number];

/** How a request is written: as a CertificationRequest (RFC 2986), or as a CertReqMsg (RFC 4211) that came in CMC. */
export type RequestFormat = 'pkcs10' | 'crmf';

export interface RequestRow {
  readonly id: string;
  readonly ca: string;
  readonly operation: string;
  /** RFC 4514. */
  readonly subject: string;
  /** As in {@link CertificateRow}. */
  readonly sans: readonly string[];
  readonly key_type: string;
  readonly requester: string;
  readonly method: string;
  readonly status: RequestStatus;
  readonly created_at: number;
  readonly decided_at: number | null;
  /** Why it was rejected or failed. */
  readonly reason: string | null;
  /** Of its certificate. */
  readonly serial: string | null;
  /** DER of the request that was queued: what is approved is what is issued. */
  readonly csr: Buffer;
  readonly format: RequestFormat;
  /** Hex SHA-256 of the SubjectPublicKeyInfo; null where the server generates the key, when it is issued. */
  readonly spki_sha256: string | null;
  /** The OTP of which it holds one use. */
  readonly otp_id: string | null;
  /** The same for the same request: a hash of requester, CA, operation, public key (unless we generate it) and names. */
  readonly recognition: string;
  /** When it got its status, or was submitted. */
  readonly changed_at: number;
  /** Who decides now: an administrator here, or the people at a remote CA. */
  readonly decider: 'admin' | 'ca';
  /** What the CA calls it; null where it decides: what became of the submission is not known. */
  readonly reference: string | null;
  /** Since when the CA works and does not know it. */
  readonly missing_since: number | null;
}

/** How a request ends that a remote CA decides about. */
export interface RequestEnd {
  readonly status: 'rejected' | 'failed';
  readonly reason: string;
  /** null: nobody decided. */
  readonly decided_at: number | null;
  /** Failed for good: who asks again gets the same answer. */
  readonly final: boolean;
  readonly otp_use_returns: boolean;
}

export interface RequestFilter extends PageRequest {
  readonly status?: RequestStatus | undefined;
}

export interface Decision {
  readonly id: string;
  readonly status: 'approved' | 'rejected';
  readonly reason: string | null;
  readonly decided_at: number;
}

/** How long queued requests are kept, in milliseconds. */
export interface RequestLifetimes {
  /** From queued to decided, and from approved to issued. */
  readonly pending_ttl: number;
  /** After that. */
  readonly retention: number;
}

// --- CMC messages ----------------------------------------------------------------------------------------------

/** A message that is to be processed once, however often it comes (RFC 5272 §6.6). */
export interface CmcMessage {
  /** The same for the same message of the same sender: a hash of CA, sender, transactionId, senderNonce and content. */
  readonly key: string;
  /** Taken the first time; a message that is taken up again keeps it. */
  readonly id: string;
  /** A hash of CA, sender and transactionId. */
  readonly transaction_key: string;
  /** The process that is at work on it. */
  readonly instance: string;
  readonly created_at: number;
}

/** What was answered for good. */
export interface CmcAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** DER. */
  readonly der: Buffer;
}

export type CmcClaim =
  | { readonly state: 'claimed'; readonly id: string }
  | { readonly state: 'under-way' }
  | { readonly state: 'answered'; readonly answer: CmcAnswer };

/** How the work on a message ended. */
export interface CmcConclusion {
  /** The senderNonce of what was answered. */
  readonly nonce: Buffer | null;
  /** null: not for good; the message may come again and is then processed again. */
  readonly answer: CmcAnswer | null;
}

export interface Store {
  // one-time passwords
  insertOtp(row: OtpRow, events: readonly AuditEvent[]): Promise<void>;
  /** @param former the lookup of a token made before there was a lookup key; `lookup` goes before */
  findOtp(lookup: string, former: string): Promise<OtpRow | undefined>;
  getOtp(id: string): Promise<OtpRow | undefined>;
  /** Oldest first. */
  listOtps(page: PageRequest): Promise<Page<OtpRow>>;
  /** Marks the token dead. `false`: no such token. Revoking twice is not an error, but commits no second event. */
  revokeOtp(id: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;

  // lockout: keys are `address:…` / `username:…` / `identification:…`. Only what comes of a use of a password clears
  // counts: `succeeded` names the keys of that password's sender. A lockout in force stays.
  /** The latest end of a lockout in force for any of the keys. */
  lockedUntil(keys: readonly string[], now: number): Promise<number | undefined>;
  /**
   * Counts one failure on each key; more than `max_failures` within the window starts a lockout (and audits
   * `lockout.started`). A key that is locked out already is not counted; `events` are committed all the same.
   */
  recordFailure(
    keys: readonly string[],
    policy: LockoutPolicy,
    now: number,
    events: readonly AuditEvent[],
  ): Promise<void>;
  listLockouts(page: PageRequest, now: number): Promise<Page<LockoutRow>>;
  deleteLockout(key: string, events: readonly AuditEvent[]): Promise<boolean>;

  // issuance
  /**
   * Takes the OTP use (if any) and commits the intent. An OTP is usable when it is not revoked, has not expired at
   * `created_at` and has a use left. Anything but `reserved` changed nothing and committed none of the events.
   */
  reserve(reservation: Reservation, events: readonly AuditEvent[]): Promise<ReserveResult>;
  /**
   * Stores the certificate and closes the reservation of its `request_id`.
   *
   * @throws {EstuaryError} 500 `RESERVATION_NOT_OPEN` when there is none (it was released, or recorded already), or
   *   it is for another CA or serial; 500 `SERIAL_TAKEN` when the CA has a certificate of this serial
   * @param succeeded the lockout keys to clear
   */
  recordCertificate(row: CertificateRow, events: readonly AuditEvent[], succeeded?: readonly string[]): Promise<void>;
  /**
   * Closes a reservation without a certificate and gives the OTP use back, exactly once. `false`: it was not open;
   * nothing changed and none of the events was committed.
   */
  releaseReservation(request_id: string, events: readonly AuditEvent[]): Promise<boolean>;
  /**
   * {@link reserve} for a queued request: the reservation has its id, and takes no OTP use, because the request holds
   * one. At most one is open for a request, in all processes; recording its certificate makes the request `issued`.
   */
  claimRequest(reservation: Reservation, events: readonly AuditEvent[]): Promise<ClaimResult>;
  /** Reservations neither recorded nor released: of one instance, or of all. Oldest first. */
  openReservations(instance?: string): Promise<readonly Reservation[]>;

  // queued requests
  /**
   * Takes the OTP use (if any) and queues a `pending` request, unless {@link findRequest} finds one other than
   * `supersedes`: that one is the answer then, and nothing changed.
   *
   * @param succeeded the lockout keys to clear with `queued`
   */
  queueRequest(
    row: RequestRow,
    supersedes: string | null,
    events: readonly AuditEvent[],
    succeeded?: readonly string[],
  ): Promise<'queued' | 'otp-unusable' | RequestRow>;
  /** The newest pending, approved, issued or rejected request with this recognition. */
  findRequest(recognition: string): Promise<RequestRow | undefined>;
  getRequest(id: string): Promise<RequestRow | undefined>;
  /** Oldest first. */
  listRequests(filter: RequestFilter): Promise<Page<RequestRow>>;
  /** Decides a pending request of ours. The events are committed with `decided` only. */
  decideRequest(decision: Decision, events: readonly AuditEvent[]): Promise<'decided' | 'not-pending' | 'unknown'>;
  /**
   * Ends an approved request that the CA refuses for good; its OTP use goes back. `false`: it is not approved, or its
   * issuance is under way; nothing changed.
   */
  failRequest(id: string, reason: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;

  // requests that a remote CA decides about
  /**
   * The intent to submit: {@link queueRequest} with the CA as the decider (or an approved request handed on to it), and
   * the reservation, which the process holds for as long as it is at work on it.
   */
  submitRequest(
    row: RequestRow,
    supersedes: string | null,
    reservation: Reservation,
    events: readonly AuditEvent[],
  ): Promise<'submitted' | 'otp-unusable' | RequestRow>;
  /**
   * Closes the reservation; the request waits at the CA.
   *
   * @param reference null: what became of the submission is not known
   * @param succeeded the lockout keys to clear
   */
  awaitCa(
    id: string,
    reference: string | null,
    events: readonly AuditEvent[],
    succeeded?: readonly string[],
  ): Promise<void>;
  /** Closes the reservation of what the CA certainly did not take. The request never was, or is approved again; its OTP use goes back in the first case. */
  withdrawRequest(id: string, events: readonly AuditEvent[]): Promise<void>;
  /** Notes that somebody asks; true: the CA has not been asked since `before`, nobody is at work on it, the caller may. */
  takePoll(id: string, now: number, before: number): Promise<boolean>;
  noteMissing(id: string, since: number | null): Promise<void>;
  /** `false`: it does not wait any more, or somebody is at work on it; nothing changed. */
  endRequest(id: string, ending: RequestEnd, now: number, events: readonly AuditEvent[]): Promise<boolean>;
  /** Those without a reference that nobody is at work on, or has asked for since `before`. Oldest first. */
  listUnanswered(before: number, limit: number): Promise<readonly RequestRow[]>;

  /**
   * Ends what waited longer than `pending_ttl` (and audits `request.expired`), deletes what ended longer ago than
   * `retention`. OTP uses do not go back.
   */
  expireRequests(lifetimes: RequestLifetimes, now: number): Promise<{ expired: number; purged: number }>;

  // CMC messages
  /**
   * Takes a message for this process, unless it has been answered for good or another process works on it. What this
   * process itself is at work on it knows.
   */
  claimCmcMessage(message: CmcMessage): Promise<CmcClaim>;
  /** Ends the work on a claimed message. @throws {EstuaryError} 500 `CMC_MESSAGE_NOT_CLAIMED` */
  concludeCmcMessage(key: string, instance: string, conclusion: CmcConclusion): Promise<void>;
  /** Lets go of what a dead process (or every process, before any works) was at work on. */
  releaseCmcMessages(instance?: string): Promise<void>;
  /** Whether one of our latest answers in this transaction carried the nonce. */
  isCmcNonce(transaction_key: string, nonce: Buffer): Promise<boolean>;
  /** Forgets messages that came at this time or before; how many. */
  purgeCmcMessages(before: number): Promise<number>;

  // certificates
  getCertificates(serial: string, ca?: string): Promise<readonly CertificateRow[]>;
  findCertificateByFingerprint(fingerprint_sha256: string): Promise<CertificateRow | undefined>;
  /** The certificate that a request came to. */
  findCertificateByRequest(request_id: string): Promise<CertificateRow | undefined>;
  /** By the subjectKeyIdentifier, hex; the newest first. */
  findCertificatesByKey(key_identifier: string): Promise<readonly CertificateRow[]>;
  /** Oldest first. */
  listCertificates(filter: CertificateFilter, now: number): Promise<Page<CertificateRow>>;
  /** Marks a certificate revoked; the events are committed with `revoked` only. */
  revokeCertificate(revocation: Revocation, events: readonly AuditEvent[]): Promise<RevokeResult>;

  // CA certificates that clients send with theirs
  /** What was remembered of this client, by its certificate's fingerprint; empty when nothing was. */
  recallIntermediates(leaf: string): Promise<readonly PresentedIntermediate[]>;
  /** Replaces what was remembered of this client. What has not been used for long is forgotten. */
  rememberIntermediates(path: PresentedPath, now: number): Promise<void>;

  // revocation lists
  /** The number of the CA's latest CRL; undefined before the first. */
  crlNumber(ca: string): Promise<number | undefined>;
  getCrl(ca: string): Promise<CrlRow | undefined>;
  /** Revoked certificates in the order of their issuance. */
  listRevoked(filter: RevokedFilter): Promise<readonly RevokedRow[]>;
  /** A number for a CRL to come: higher than every one before, also those of lists that never came to be. */
  takeCrlNumber(ca: string): Promise<number>;
  /** `false`: there is a list with a higher number already; nothing changed. */
  saveCrl(row: CrlRow, events: readonly AuditEvent[]): Promise<boolean>;

  // audit
  /** Commits events that belong to no other change. */
  audit(events: readonly AuditEvent[]): Promise<void>;
  /** Oldest first. */
  listAudit(
    filter: PageRequest & { since?: number | undefined; type?: AuditType | undefined },
  ): Promise<Page<AuditRecord>>;

  /** Begins a new audit file where the former was renamed away or emptied (SIGHUP after a rotation). */
  reopenAuditFile(): Promise<void>;
  /** Throws {@link EstuaryError} 503 when the database or the audit file cannot be written. */
  checkWritable(): Promise<void>;
  /** Commits what is waiting, then lets go of the database and the audit file. */
  close(): Promise<void>;
}
