import { done, type Events, undone } from './calls/calls.ts';
import { type Calls, type Database, insertInto, NO_LIMIT, type Operation, type Write } from './port.ts';

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

export function sessionReads(db: Database) {
  const byHash = db.prepare<[string], SessionRow>(`SELECT ${SESSION_COLUMNS} FROM session WHERE id_hash = ?`);
  return {
    /** Includes ended ones. */
    getSession: (id_hash: string): Operation<SessionRow | undefined> => byHash.get(id_hash),
  };
}

export function sessionWrites(db: Database) {
  const insert = db.prepare<SessionRow>(insertInto('session', SESSION_COLUMNS));
  const remove = <Parameters extends readonly unknown[]>(selection: string) =>
    db.prepare<Parameters>(`DELETE FROM session WHERE ${db.dialect.among('session', 'position', selection)}`);
  const forget = remove<[number]>('WHERE ends_at <= ?');
  const bound = remove<[string, number]>(
    `WHERE administrator = ? ORDER BY created_at DESC, position DESC ${NO_LIMIT} OFFSET ?`,
  );
  const touch = db.prepare<[number, string]>('UPDATE session SET seen_at = ? WHERE id_hash = ?');
  const end = db.prepare<[string]>('DELETE FROM session WHERE id_hash = ?');
  return {
    /** Begins a session, replacing another one (its hash), if given. Deletes those that ended before its `created_at`. */
    *createSession(row: SessionRow, replaces: string | null, events: Events): Write<void> {
      yield* forget.run(row.created_at);
      if (replaces !== null) yield* end.run(replaces);
      yield* insert.run(row);
      yield* bound.run(row.administrator, MAX_SESSIONS);
      return done(undefined, events);
    },
    /** Records a use; a deleted session stays deleted. */
    *touchSession(id_hash: string, seen_at: number): Write<void> {
      yield* touch.run(seen_at, id_hash);
      return undone(undefined);
    },
    /** `false`: unknown; nothing changed. */
    *deleteSession(id_hash: string, events: Events): Write<boolean> {
      return (yield* end.run(id_hash)) === 1 ? done(true, events) : undone(false);
    },
  };
}

/** The sessions of administrators, shared by all nodes. */
export type SessionStore = Calls<ReturnType<typeof sessionReads> & ReturnType<typeof sessionWrites>>;
