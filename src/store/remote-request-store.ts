import type { AuditEvent } from '../audit/event.ts';
import type { Reservation } from './issuance-store.ts';
import type { RequestRow } from './request-store.ts';

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

/** The requests that a remote CA decides about. */
export interface RemoteRequestStore {
  /**
   * The intent to submit: {@link queueRequest} with the CA as the decider (or an approved request handed on to it), and
   * the reservation, which the process holds for as long as it is at work on it.
   *
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
}
