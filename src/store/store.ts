/**
 * The store's interface. Every mutating call is one transaction that also commits the given audit events: when the
 * promise resolves both are durable, otherwise neither happened. Times are milliseconds since the epoch, serial numbers
 * lowercase hex.
 *
 * The calls are grouped by subject in the neighboring files; components use only the subjects that they need. Every
 * call is asynchronous and does not block the event loop: the database may be in a thread of this process (sqlite/) or
 * on the network. test/store/contract tests the requirements of all drivers.
 *
 * Every call can reject with {@link EstuaryError} 503 (`STORE_UNAVAILABLE`, `AUDIT_UNAVAILABLE`, `AUDIT_TAMPERED`) or
 * 500 (`STORE_FAILED`). Then nothing happened, unless the store was lost meanwhile. Lists reject with 400
 * `CURSOR_INVALID` for a foreign cursor.
 */
import type { AuditStore } from './audit-store.ts';
import type { CertificateStore } from './certificate-store.ts';
import type { CmcStore } from './cmc-store.ts';
import type { CrlStore } from './crl-store.ts';
import type { DeviceStore } from './device-store.ts';
import type { IntermediateStore } from './intermediate-store.ts';
import type { IssuanceStore } from './issuance-store.ts';
import type { LockoutStore } from './lockout-store.ts';
import type { NotificationStore } from './notification-store.ts';
import type { OtpStore } from './otp-store.ts';
import type { RemoteRequestStore, RequestStore } from './request-store.ts';
import type { RenewalStore } from './renewal-store.ts';
import type { RetentionStore } from './retention-store.ts';
import type { SessionStore } from './session-store.ts';
import type { StatisticsStore } from './statistics-store.ts';

/** Search index for name substrings, filled after the rows. Until then, searches scan unindexed rows. */
export interface SearchStore {
  /** Whether rows remain for {@link indexForSearch}. */
  isSearchBehind(): Promise<boolean>;
  /** Indexes a small batch. `true`: there is more. */
  indexForSearch(): Promise<boolean>;
}

/** Pending items at a moment. */
export interface Waiting {
  /** Requests that await a decision, by CA. */
  readonly pending: readonly { readonly ca: string; readonly count: number }[];
  /** Locked-out keys. */
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
    RenewalStore,
    NotificationStore,
    SearchStore,
    SessionStore,
    StatisticsStore,
    NodeStore {
  /** Pending items, for the metrics. */
  countWaiting(now: number): Promise<Waiting>;
  /** Begins a new audit file if the old one was renamed or emptied (SIGHUP after a rotation). */
  reopenAuditFile(): Promise<void>;
  /** Throws {@link EstuaryError} 503 if the database or the audit file is not writable. */
  checkWritable(): Promise<void>;
  /** Commits waiting calls, then closes the database and the audit file. */
  close(): Promise<void>;
}

/** A server on a shared store. */
export interface NodeRow {
  readonly name: string;
  /** Host name of its machine. */
  readonly host: string;
  /** Milliseconds since its last heartbeat, by the store's clock. */
  readonly age: number;
  /** Whether the other nodes consider it alive. */
  readonly alive: boolean;
  /** Whether it performs the tasks of a single node. */
  readonly on_duty: boolean;
}

/** Milliseconds of clock difference between a node and the database before a warning, and before it is not ready. */
export const CLOCK_TOLERANCE = { warning: 5000, notReady: 60_000 } as const;

export interface NodeStore {
  /** By name; empty for a store that is not shared. */
  listNodes(): Promise<readonly NodeRow[]>;
}
