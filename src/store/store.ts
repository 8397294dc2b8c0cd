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
import { acmeAccountReads, acmeAccountWrites } from './acme-account-store.ts';
import { type ArchiveStore, auditLogWrites, type AuditStore } from './audit-store.ts';
import type { Events } from './calls/calls.ts';
import type { QueueOptions } from './calls/write-queue.ts';
import { type CertificateListStore, certificateReads, certificateWrites } from './certificate-store.ts';
import { cmcReads, cmcWrites } from './cmc-store.ts';
import { crlReads, crlWrites } from './crl-store.ts';
import { deviceReads, deviceWrites } from './device-store.ts';
import { holderLists } from './holder-list.ts';
import { holderReads, holderWrites } from './holder-store.ts';
import { intermediateReads, intermediateWrites } from './intermediate-store.ts';
import { heldCertificateReads } from './held-certificates.ts';
import { issuanceReads, issuanceWrites } from './issuance-store.ts';
import type { LookupKeyOptions } from './lookup-key-file.ts';
import { lockoutReads, lockoutWrites } from './lockout-store.ts';
import { notificationReads, notificationWrites } from './notification-store.ts';
import { otpReads, otpWrites } from './otp-store.ts';
import type { Calls } from './operation.ts';
import type { Database } from './port.ts';
import { remoteRequestReads, remoteRequestWrites } from './remote-request-store.ts';
import { renewalReads, renewalWrites } from './renewal-store.ts';
import { requestReads, requestWrites } from './request-store.ts';
import { rescueReads, rescueWrites } from './rescue-store.ts';
import { retentionReads, retentionWrites } from './retention-store.ts';
import { sessionReads, sessionWrites } from './session-store.ts';
import { type RejectionStore, statisticsReads } from './statistics-store.ts';
import { useReads, useWrites } from './use-store.ts';

export function commonReads(db: Database) {
  return {
    ...otpReads(db),
    ...lockoutReads(db),
    ...issuanceReads(db),
    ...certificateReads(db),
    ...deviceReads(db),
    ...crlReads(db),
    ...requestReads(db),
    ...remoteRequestReads(db),
    ...cmcReads(db),
    ...intermediateReads(db),
    ...acmeAccountReads(db),
    ...sessionReads(db),
    ...retentionReads(db),
    ...renewalReads(db),
    ...rescueReads(db),
    ...heldCertificateReads(db),
    ...notificationReads(db),
    ...statisticsReads(db),
    ...useReads(db),
    ...holderReads(db),
    ...holderLists(db),
  };
}

/** @param ofDead condition on a CMC message's instance without a living node */
export function commonWrites(db: Database, ofDead: string) {
  return {
    ...auditLogWrites,
    ...otpWrites(db),
    ...lockoutWrites(db),
    ...issuanceWrites(db),
    ...certificateWrites(db),
    ...deviceWrites(db),
    ...crlWrites(db),
    ...requestWrites(db),
    ...remoteRequestWrites(db),
    ...cmcWrites(db, ofDead),
    ...intermediateWrites(db),
    ...acmeAccountWrites(db),
    ...sessionWrites(db),
    ...retentionWrites(db),
    ...renewalWrites(db),
    ...rescueWrites(db),
    ...notificationWrites(db),
    ...useWrites(db),
    ...holderWrites(db),
  };
}

/** Search index for name substrings, filled after the rows. Until then, searches scan unindexed rows. */
export interface SearchStore {
  /** Whether rows remain for {@link indexForSearch}. */
  isSearchBehind(): Promise<boolean>;
  /** Indexes a small batch. `true`: there is more. */
  indexForSearch(): Promise<boolean>;
}

/** The calls that both drivers have in common: the operations of the subjects. */
type CommonCalls = Calls<ReturnType<typeof commonReads> & ReturnType<typeof commonWrites>>;

export interface Store
  extends CommonCalls, RejectionStore, CertificateListStore, AuditStore, ArchiveStore, SearchStore, NodeStore {
  /** Throws {@link EstuaryError} 503 if the database or the audit file is not writable. */
  checkWritable(): Promise<void>;
  /** Commits waiting calls, then closes the database and the audit file. */
  close(): Promise<void>;
}

/** What a store of either driver is opened with. */
export interface StoreOptions extends QueueOptions {
  /** Of this node only; its folder is created if it does not exist. */
  readonly auditFile: string;
  /** The name of this node, in its audit records. */
  readonly node?: string;
  /** The key of the tokens' lookups. */
  readonly lookupKey?: LookupKeyOptions;
  /** Receives the events of each commit: what the audit log got, and nothing else. */
  readonly onCommit?: (events: Events) => void;
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
