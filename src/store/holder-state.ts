/** The state of a holder, from what is known of it (docs/guides/fleet.md). */

/** In the order in which they apply. */
export const HOLDER_STATES = ['expired', 'failing', 'waiting', 'stuck', 'late', 'due', 'never', 'ok'] as const;
export type HolderState = (typeof HOLDER_STATES)[number];

/** States that are reported once per certificate. */
export const REPORTED_STATES = ['expired', 'failing', 'stuck', 'late'] as const satisfies readonly HolderState[];

export const isReported = (state: string | null): state is (typeof REPORTED_STATES)[number] =>
  REPORTED_STATES.some((reported) => reported === state);

/** The certificate that was issued last and is not revoked. */
export interface NewestCertificate {
  readonly issued_at: number;
  readonly not_after: number;
  readonly first_used_at: number | null;
  readonly window: { readonly start: number; readonly end: number };
  /** The certificate that was renewed with it; undefined if it was not issued in a renewal. */
  readonly renewed?: {
    /** When the connection of its last use began. */
    readonly connected_at: number | null;
    /** How often it was renewed since one of its successors last authenticated. */
    readonly renewals: number;
  };
}

export interface HolderFacts {
  readonly newest: NewestCertificate;
  /** When a renewal was first rejected since its issuance. */
  readonly failed_at: number | null;
  /** When the renewal that waits in the queue was queued. */
  readonly queued_at: number | null;
}

export interface DerivedState {
  readonly state: HolderState | null;
  readonly since: number | null;
  /** When time alone may change the state. */
  readonly next_at: number | null;
}

/** A new certificate may be used over a connection that was open before it was issued; then the client has not failed to install it. */
const INSTALLATION = 60_000;
const RENEWALS = 3;

export const NOT_LISTED: DerivedState = { state: null, since: null, next_at: null };

/** @param forget milliseconds after which an expired holder is forgotten; 0: never */
export function holderState(facts: HolderFacts, now: number, forget: number): DerivedState {
  const { newest, failed_at, queued_at } = facts;
  const { issued_at, not_after, window } = newest;
  if (now > not_after) {
    const end = forget === 0 ? null : not_after + forget;
    return end !== null && now > end
      ? NOT_LISTED
      : { state: 'expired', since: not_after, next_at: end === null ? null : end + 1 };
  }
  const next_at = [window.start, window.end].find((time) => time > now) ?? not_after + 1;
  const is = (state: HolderState, since: number): DerivedState => ({ state, since, next_at });
  if (failed_at !== null) return is('failing', failed_at);
  if (queued_at !== null) return is('waiting', queued_at);
  const stuck = stuckSince(newest);
  if (stuck !== undefined) return is('stuck', stuck);
  if (now >= window.end) return is('late', window.end);
  return now >= window.start ? is('due', window.start) : is('ok', issued_at);
}

function stuckSince({ issued_at, first_used_at, renewed }: NewestCertificate): number | undefined {
  if (renewed === undefined || first_used_at !== null) return undefined;
  const { connected_at, renewals } = renewed;
  if (connected_at !== null && connected_at >= issued_at + INSTALLATION) return connected_at;
  return renewals >= RENEWALS ? issued_at : undefined;
}
