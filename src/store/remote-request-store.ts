import type { AuditEvent } from '../audit/event.ts';
import type { Reservation } from './issuance-store.ts';
import type { RequestRow } from './request-store.ts';

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
