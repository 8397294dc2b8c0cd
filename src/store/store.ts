/**
 * The store in the domain's words. Every mutating call is one transaction that also commits the audit events given to
 * it: either both are durable when the promise resolves, or neither happened. Times are milliseconds since the epoch,
 * serials lower-case hex.
 *
 * The calls stand by subject in the files beside this one; a part of the server takes the subjects that it uses. Every
 * call is asynchronous and none blocks the event loop: the database may be in a thread of this process (sqlite/) or
 * somewhere on the network. What any driver has to keep is tested in test/store/contract.
 *
 * Every call can reject with {@link EstuaryError} 503 (`STORE_UNAVAILABLE`, `AUDIT_UNAVAILABLE`, `AUDIT_TAMPERED`) or
 * 500 (`STORE_FAILED`); then nothing of it happened, unless the store went away over it: then it may have.
 * Lists reject with 400 `CURSOR_INVALID` for a cursor that they did not give out.
 */
import type { AuditStore } from './audit-store.ts';
import type { CertificateStore } from './certificate-store.ts';
import type { CmcStore } from './cmc-store.ts';
import type { CrlStore } from './crl-store.ts';
import type { DeviceStore } from './device-store.ts';
import type { IntermediateStore } from './intermediate-store.ts';
import type { IssuanceStore } from './issuance-store.ts';
import type { LockoutStore } from './lockout-store.ts';
import type { NodeStore } from './node-store.ts';
import type { OtpStore } from './otp-store.ts';
import type { RemoteRequestStore } from './remote-request-store.ts';
import type { RequestStore } from './request-store.ts';
import type { RetentionStore } from './retention-store.ts';
import type { SessionStore } from './session-store.ts';
import type { StatisticsStore } from './statistics-store.ts';

/** What parts of names are found by, which is filled behind what it tells of. Until then, they are found by looking at each. */
export interface SearchStore {
  /** Whether there is anything that {@link indexForSearch} has not been through. */
  isSearchBehind(): Promise<boolean>;
  /** Goes through some more, so many that nobody waits long for it. `true`: there is more. */
  indexForSearch(): Promise<boolean>;
}

/** What waits for somebody at a moment. */
export interface Waiting {
  /** Requests that wait for a decision, by CA. */
  readonly pending: readonly { readonly ca: string; readonly count: number }[];
  /** Keys that are locked out. */
  readonly lockouts: number;
}

export interface Store
  extends
    OtpStore,
    LockoutStore,
    CertificateStore,
    DeviceStore,
    IntermediateStore,
    CrlStore,
    IssuanceStore,
    RequestStore,
    RemoteRequestStore,
    CmcStore,
    AuditStore,
    RetentionStore,
    SearchStore,
    SessionStore,
    StatisticsStore,
    NodeStore {
  /** What waits for somebody, for the metrics. @param now milliseconds since the epoch */
  countWaiting(now: number): Promise<Waiting>;
  /** Begins a new audit file where the former was renamed away or emptied (SIGHUP after a rotation). */
  reopenAuditFile(): Promise<void>;
  /** Throws {@link EstuaryError} 503 when the database or the audit file cannot be written. */
  checkWritable(): Promise<void>;
  /** Commits what is waiting, then lets go of the database and the audit file. */
  close(): Promise<void>;
}
