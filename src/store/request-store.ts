import type { AuditEvent } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';
import type { RequestStatus } from './request-state.ts';
import type { Reservation } from './issuance-store.ts';

/** Format of a request: CertificationRequest (RFC 2986), or CertReqMsg (RFC 4211) from CMC. */
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
  /** The requester, for people. */
  readonly requester: string;
  readonly method: string;
  /** Identifies the requester, see auth/identity.ts. */
  readonly requester_id: string;
  /** Issuer's subject of the authenticating certificate, RFC 4514. */
  readonly requester_issuer: string | null;
  /** Its subjectAltNames, as in {@link CertificateRow}. */
  readonly requester_sans: readonly string[];
  /** The names of its certificate, encoded by enrollment/certified-names.ts. */
  readonly names: string;
  readonly status: RequestStatus;
  readonly created_at: number;
  readonly decided_at: number | null;
  /** Administrators who have approved it; the last one may have rejected it. */
  readonly decided_by: readonly Decider[];
  /** Approvals required when it was queued. */
  readonly approvals: number;
  /** Why it was rejected or failed. */
  readonly reason: string | null;
  /** Of its certificate. */
  readonly serial: string | null;
  /** DER of the queued request: exactly what was approved is issued. */
  readonly csr: Buffer;
  readonly format: RequestFormat;
  /** Hex SHA-256 of the SubjectPublicKeyInfo; null if the server generates the key on issuance. */
  readonly spki_sha256: string | null;
  /** The OTP of which it holds one use. */
  readonly otp_id: string | null;
  /** Equal for the same request: a hash of requester, CA, operation, public key (unless generated here) and names. */
  readonly recognition: string;
  /** Time of its status or its submission. */
  readonly changed_at: number;
  /** Who decides now: an administrator here, or a remote CA. */
  readonly decider: 'admin' | 'ca';
  /** The remote CA's ID; null: the outcome of the submission is unknown. */
  readonly reference: string | null;
  /** Since when the working CA does not know it. */
  readonly missing_since: number | null;
  /** As in {@link CertificateRow}. */
  readonly device: string | null;
  readonly device_key: string | null;
  readonly required_device: string | null;
  /** An external service's decision on names and validity when it was queued; null: none. */
  readonly override: RequestOverride | null;
}

/** An administrator who decided. */
export interface Decider {
  /** Identifies the administrator. */
  readonly key: string;
  /** For people. */
  readonly name: string;
}

/** As in `[ca.authorization]`; absent fields stay as requested. */
export interface RequestOverride {
  /** RFC 4514. */
  readonly subject?: string;
  /** As in {@link CertificateRow}. */
  readonly sans?: readonly string[];
  readonly validity_days?: number;
}

/** All given criteria must match. */
export interface RequestFilter extends PageRequest {
  readonly status?: RequestStatus | undefined;
  readonly ca?: string | undefined;
  readonly requester?: string | undefined;
  /** A device's ID in any of its entries. */
  readonly device?: string | undefined;
  /** A part of the subject, a subjectAltName, the requester or the device's ID, ignoring case, or the ID. */
  readonly search?: string | undefined;
  /** Only rows of these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface Decision {
  readonly id: string;
  /** `pending`: approved, with further approvals required. */
  readonly status: 'approved' | 'rejected' | 'pending';
  readonly reason: string | null;
  readonly decided_at: number;
  /** Deciders before and after this decision; if others decided meanwhile, nothing changes. Absent: unchanged. */
  readonly deciders?: { readonly before: readonly Decider[]; readonly after: readonly Decider[] };
}

/** Lifetimes of queued requests, in milliseconds. */
export interface RequestLifetimes {
  /** From queuing to decision, and from approval to issuance. */
  readonly pending_ttl: number;
  /** After that. */
  readonly retention: number;
}

export interface RequestStore {
  /**
   * Takes the OTP use (if any) and queues a `pending` request. If {@link findRequest} finds one other than
   * `supersedes`, returns that one, and nothing changes.
   * @param succeeded the lockout keys to clear with `queued`
   */
  queueRequest(
    row: RequestRow,
    supersedes: string | null,
    events: readonly AuditEvent[],
    succeeded?: readonly string[],
  ): Promise<'queued' | 'otp-unusable' | 'device-refused' | RequestRow>;
  /** The newest pending, approved, issued or rejected request with this recognition. */
  findRequest(recognition: string): Promise<RequestRow | undefined>;
  getRequest(id: string): Promise<RequestRow | undefined>;
  /** In order of arrival. */
  listRequests(filter: RequestFilter): Promise<Page<RequestRow>>;
  /**
   * Decides a pending request of this server, or counts an approval. The events are committed with `decided` only.
   * `device-refused`: its device may no longer have a certificate. `overtaken`: another administrator decided
   * meanwhile.
   */
  decideRequest(
    decision: Decision,
    events: readonly AuditEvent[],
  ): Promise<'decided' | 'not-pending' | 'device-refused' | 'overtaken' | 'unknown'>;
  /**
   * Ends an approved request that the CA permanently rejects; returns its OTP use. `false`: it is not approved, or its
   * issuance is in progress; nothing changed.
   */
  failRequest(id: string, reason: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;
  /**
   * Ends requests older than `pending_ttl` (audited as `request.expired`); deletes a batch that ended longer ago than
   * `retention` (retention-store.ts). Does not return OTP uses.
   */
  expireRequests(lifetimes: RequestLifetimes, now: number): Promise<{ expired: number; purged: number }>;
}

/** How a request at a remote CA ends. */
export interface RequestEnd {
  readonly status: 'rejected' | 'failed';
  readonly reason: string;
  /** null: no decision. */
  readonly decided_at: number | null;
  /** Permanent: a repeat gets the same answer. */
  readonly final: boolean;
  readonly otp_use_returns: boolean;
}

/** Requests that a remote CA decides. */
export interface RemoteRequestStore {
  /**
   * Commits the intent to submit: {@link queueRequest} with the CA as the decider (or an approved request handed on to
   * it), and the reservation that the process holds while it works on it.
   * @param retry_window as in {@link Repeatable}
   */
  submitRequest(
    row: RequestRow,
    supersedes: string | null,
    reservation: Reservation,
    events: readonly AuditEvent[],
    retry_window?: number,
  ): Promise<'submitted' | 'otp-unusable' | 'device-refused' | 'repeated' | RequestRow>;
  /**
   * Closes the reservation; the request is pending at the CA.
   * @param reference null: the outcome of the submission is unknown
   * @param succeeded the lockout keys to clear
   */
  awaitCa(
    id: string,
    reference: string | null,
    events: readonly AuditEvent[],
    succeeded?: readonly string[],
  ): Promise<void>;
  /**
   * Closes the reservation of a request that the CA certainly did not receive. The request is deleted, and its OTP use
   * returned; an approved request becomes approved again.
   */
  withdrawRequest(id: string, events: readonly AuditEvent[]): Promise<void>;
  /**
   * Records a poll. true: the caller may ask the CA, since nobody has since `before` and no process is working on it.
   */
  takePoll(id: string, now: number, before: number): Promise<boolean>;
  noteMissing(id: string, since: number | null): Promise<void>;
  /** `false`: it is no longer pending, or a process is working on it; nothing changed. */
  endRequest(id: string, ending: RequestEnd, now: number, events: readonly AuditEvent[]): Promise<boolean>;
  /** Requests without a reference that no process is working on or has looked up since `before`; oldest first. */
  listUnanswered(before: number, limit: number): Promise<readonly RequestRow[]>;
}
