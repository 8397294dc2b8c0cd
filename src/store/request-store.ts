import type { AuditEvent } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';
import type { RequestStatus } from './request-state.ts';

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
  /** Who asked, for people. */
  readonly requester: string;
  readonly method: string;
  /** Identifies the requester, see auth/identity.ts. */
  readonly requester_id: string;
  /** Of a certificate that authenticated it: the subject of the CA that issued it, RFC 4514. */
  readonly requester_issuer: string | null;
  /** Likewise its subjectAltNames, as in {@link CertificateRow}. */
  readonly requester_sans: readonly string[];
  /** The names of its certificate, as enrollment/names.ts writes them. */
  readonly names: string;
  readonly status: RequestStatus;
  readonly created_at: number;
  readonly decided_at: number | null;
  /** The administrators who have approved it so far, or of whom the last rejected it. */
  readonly decided_by: readonly Decider[];
  /** How many administrators had to approve when it was queued. */
  readonly approvals: number;
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
  /** As in {@link CertificateRow}. */
  readonly device: string | null;
  readonly device_key: string | null;
  readonly required_device: string | null;
  /** What an external service has decided of its names and validity when it was queued; null: none was asked. */
  readonly override: RequestOverride | null;
}

/** An administrator who decided. */
export interface Decider {
  /** The same for the same administrator. */
  readonly key: string;
  /** For people. */
  readonly name: string;
}

/** As `[ca.authorization]` has it; what is absent is as it was asked for. */
export interface RequestOverride {
  /** RFC 4514. */
  readonly subject?: string;
  /** As in {@link CertificateRow}. */
  readonly sans?: readonly string[];
  readonly validity_days?: number;
}

/** Which requests; all that is given holds. */
export interface RequestFilter extends PageRequest {
  readonly status?: RequestStatus | undefined;
  readonly ca?: string | undefined;
  readonly requester?: string | undefined;
  /** A device's id, whichever entry of that id it was. */
  readonly device?: string | undefined;
  /** Rows of these labels only. */
  readonly labels?: readonly string[] | undefined;
}

export interface Decision {
  readonly id: string;
  /** `pending`: approved, and more administrators have to. */
  readonly status: 'approved' | 'rejected' | 'pending';
  readonly reason: string | null;
  readonly decided_at: number;
  /** Who has decided by then, and who had when this was decided: where somebody came between, nothing changes. Absent: it stays as it is. */
  readonly deciders?: { readonly before: readonly Decider[]; readonly after: readonly Decider[] };
}

/** How long queued requests are kept, in milliseconds. */
export interface RequestLifetimes {
  /** From queued to decided, and from approved to issued. */
  readonly pending_ttl: number;
  /** After that. */
  readonly retention: number;
}

/** The requests that wait for a decision. */
export interface RequestStore {
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
  ): Promise<'queued' | 'otp-unusable' | 'device-refused' | RequestRow>;
  /** The newest pending, approved, issued or rejected request with this recognition. */
  findRequest(recognition: string): Promise<RequestRow | undefined>;
  getRequest(id: string): Promise<RequestRow | undefined>;
  /** In the order in which they came. */
  listRequests(filter: RequestFilter): Promise<Page<RequestRow>>;
  /**
   * Decides a pending request of ours, or counts an approval. The events are committed with `decided` only. `device-refused`: its device may
   * have no certificate any more, so that it cannot be approved. `overtaken`: somebody else has decided since.
   */
  decideRequest(
    decision: Decision,
    events: readonly AuditEvent[],
  ): Promise<'decided' | 'not-pending' | 'device-refused' | 'overtaken' | 'unknown'>;
  /**
   * Ends an approved request that the CA refuses for good; its OTP use goes back. `false`: it is not approved, or its
   * issuance is under way; nothing changed.
   */
  failRequest(id: string, reason: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;
  /**
   * Ends what waited longer than `pending_ttl` (and audits `request.expired`); deletes a batch of what ended longer ago than `retention` (retention-store.ts). OTP uses do not go back.
   */
  expireRequests(lifetimes: RequestLifetimes, now: number): Promise<{ expired: number; purged: number }>;
}
