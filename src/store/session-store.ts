import { done, type Events, undone } from './calls/calls.ts';
import { type Calls, lock, quickRead, write } from './operation.ts';
import { type Database, insertInto, NO_LIMIT, type Parameter, type Write } from './port.ts';

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

const BY_HASH = `SELECT ${SESSION_COLUMNS} FROM session WHERE id_hash = ?`;

export function sessionReads(db: Database) {
  return {
    /** Includes ended ones. */
    getSession: quickRead((id_hash: string) => db.get<SessionRow>(BY_HASH, id_hash)),
  };
}

const created = ({ id_hash, administrator }: SessionRow, replaces: string | null) => [
  ...lock.session(id_hash),
  ...lock.administrator(administrator),
  ...(replaces === null ? [] : lock.session(replaces)),
];

export function sessionWrites(db: Database) {
  const remove = (selection: string, ...parameters: readonly Parameter[]) =>
    db.run(`DELETE FROM session WHERE ${db.dialect.among('session', 'position', selection)}`, ...parameters);
  const end = (id_hash: string) => db.run`DELETE FROM session WHERE id_hash = ${id_hash}`;
  return {
    /** Begins a session, replacing another one (its hash), if given. Deletes those that ended before its `created_at`. */
    createSession: write(created, function* (row: SessionRow, replaces: string | null, events: Events): Write<void> {
      const oldest = `WHERE administrator = ? ORDER BY created_at DESC, position DESC ${NO_LIMIT} OFFSET ?`;
      yield* remove('WHERE ends_at <= ?', row.created_at);
      if (replaces !== null) yield* end(replaces);
      yield* db.run(insertInto('session', SESSION_COLUMNS), row);
      yield* remove(oldest, row.administrator, MAX_SESSIONS);
      return done(undefined, events);
    }),
    /** Records a use; a deleted session stays deleted. */
    touchSession: write(lock.session, function* (id_hash: string, seen_at: number): Write<void> {
      yield* db.run`UPDATE session SET seen_at = ${seen_at} WHERE id_hash = ${id_hash}`;
      return undone(undefined);
    }),
    /** `false`: unknown; nothing changed. */
    deleteSession: write(lock.session, function* (id_hash: string, events: Events): Write<boolean> {
      return (yield* end(id_hash)) === 1 ? done(true, events) : undone(false);
    }),
  };
}

/** The sessions of administrators, shared by all nodes. */
export type SessionStore = Calls<ReturnType<typeof sessionReads> & ReturnType<typeof sessionWrites>>;
