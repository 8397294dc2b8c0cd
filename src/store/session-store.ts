import type { AuditEvent } from '../audit/event.ts';

/** An administrator who has signed in with a browser (docs/reference/admin-api.md). */
export interface SessionRow {
  /** Hex SHA-256 of the session's ID, which is not stored. */
  readonly id_hash: string;
  /**
   * The token, or the entry of `admin.clients`, with which it began. Roles are not stored: the configuration determines
   * them in each call.
   */
  readonly administrator: string;
  readonly method: 'mtls' | 'bearer' | 'oidc';
  /** What the OpenID provider said about the administrator, JSON (auth/oidc); null for other methods. */
  readonly claims: string | null;
  /** Hex SHA-256 of the tbsCertificate of its client certificate; null without one. */
  readonly certificate: string | null;
  readonly created_at: number;
  /** Last use, to about a minute. */
  readonly seen_at: number;
  /** End of its lifetime. */
  readonly ends_at: number;
}

export const SESSION_COLUMNS = 'id_hash, administrator, method, claims, certificate, created_at, seen_at, ends_at';

/** Sessions per token or entry of `admin.clients`; a further one ends the oldest. */
export const MAX_SESSIONS = 50;

/** The sessions of administrators, shared by all nodes. */
export interface SessionStore {
  /** Begins a session, replacing another one (its hash), if given. Deletes those that ended before its `created_at`. */
  createSession(row: SessionRow, replaces: string | null, events: readonly AuditEvent[]): Promise<void>;
  /** Includes ended ones. */
  getSession(id_hash: string): Promise<SessionRow | undefined>;
  /** Records a use; a deleted session stays deleted. */
  touchSession(id_hash: string, seen_at: number): Promise<void>;
  /** `false`: unknown; nothing changed. */
  deleteSession(id_hash: string, events: readonly AuditEvent[]): Promise<boolean>;
}
