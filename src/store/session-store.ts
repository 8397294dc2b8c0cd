import type { AuditEvent } from '../audit/event.ts';

/** An administrator who has signed in with a browser (docs/reference/admin-api.md). */
export interface SessionRow {
  /** Hex SHA-256 of the session's id, which the store does not have. */
  readonly id_hash: string;
  /** The token, or the entry of `admin.clients`, with which it began. Roles are not stored: the configuration gives them at each call. */
  readonly administrator: string;
  readonly method: 'mtls' | 'bearer';
  /** Hex SHA-256 of the tbsCertificate of the client certificate with which it began; null: it began without one. */
  readonly certificate: string | null;
  readonly created_at: number;
  /** When it was used, to the minute or so. */
  readonly seen_at: number;
  /** When it ends, used or not. */
  readonly ends_at: number;
}

export const SESSION_COLUMNS = 'id_hash, administrator, method, certificate, created_at, seen_at, ends_at';

/** Sessions per token or entry of `admin.clients`; one more ends the oldest. */
export const MAX_SESSIONS = 50;

/** The sessions of administrators, which every process of the service knows. */
export interface SessionStore {
  /** Begins a session, in place of another one (its hash) where there was one. What is over at its `created_at` goes. */
  createSession(row: SessionRow, replaces: string | null, events: readonly AuditEvent[]): Promise<void>;
  /** Also one that is over. */
  getSession(id_hash: string): Promise<SessionRow | undefined>;
  /** Notes that it was used; one that is gone stays gone. */
  touchSession(id_hash: string, seen_at: number): Promise<void>;
  /** `false`: there is none; nothing changed. */
  deleteSession(id_hash: string, events: readonly AuditEvent[]): Promise<boolean>;
}
