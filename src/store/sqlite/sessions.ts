import type { AuditEvent } from '../../audit/event.ts';
import { MAX_SESSIONS, SESSION_COLUMNS, type SessionRow } from '../session-store.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';

/** The read of sessions. */
export function sessionReads(db: Db) {
  const byHash = db.prepare<[string], SessionRow>(`SELECT ${SESSION_COLUMNS} FROM session WHERE id_hash = ?`);
  return { getSession: (id_hash: string): SessionRow | undefined => byHash.get(id_hash) };
}

/** The writes of sessions. */
export function sessionWrites(db: Db) {
  const insert = db.prepare<[SessionRow]>(
    `INSERT INTO session (${SESSION_COLUMNS})
     VALUES (@id_hash, @administrator, @method, @certificate, @created_at, @seen_at, @ends_at)`,
  );
  const forget = db.prepare<[number]>('DELETE FROM session WHERE ends_at <= ?');
  const bound = db.prepare<[string, number]>(
    `DELETE FROM session WHERE id_hash IN
     (SELECT id_hash FROM session WHERE administrator = ? ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET ?)`,
  );
  const touch = db.prepare<[number, string]>('UPDATE session SET seen_at = ? WHERE id_hash = ?');
  const end = db.prepare<[string]>('DELETE FROM session WHERE id_hash = ?');
  return {
    createSession(row: SessionRow, replaces: string | null, events: readonly AuditEvent[]): Outcome<undefined> {
      forget.run(row.created_at);
      if (replaces !== null) end.run(replaces);
      insert.run(row);
      bound.run(row.administrator, MAX_SESSIONS);
      return done(undefined, events);
    },
    touchSession(id_hash: string, seen_at: number): Outcome<undefined> {
      touch.run(seen_at, id_hash);
      return undone(undefined);
    },
    deleteSession(id_hash: string, events: readonly AuditEvent[]): Outcome<boolean> {
      return end.run(id_hash).changes === 1 ? done(true, events) : undone(false);
    },
  };
}
