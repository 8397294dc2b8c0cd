import type { AuditEvent } from '../../audit/event.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import { MAX_SESSIONS, SESSION_COLUMNS, type SessionRow } from '../session-store.ts';
import type { Queries } from './queries.ts';

/** The read of sessions. */
export function sessionReads(db: Queries) {
  const byHash = db.prepare<[string], SessionRow>(`SELECT ${SESSION_COLUMNS} FROM session WHERE id_hash = ?`);
  return { getSession: (id_hash: string): Promise<SessionRow | undefined> => byHash.get(id_hash) };
}

/** The writes of sessions. */
export function sessionWrites(db: Queries) {
  const insert = db.prepare<SessionRow>(
    `INSERT INTO session (${SESSION_COLUMNS})
     VALUES (@id_hash, @administrator, @method, @certificate, @created_at, @seen_at, @ends_at)`,
  );
  const some = <Parameters extends readonly unknown[]>(rest: string) =>
    db.prepare<Parameters>(
      `DELETE FROM session WHERE position = ANY(ARRAY(SELECT position FROM session ${rest} FOR UPDATE SKIP LOCKED))`,
    );
  const forget = some<[number]>('WHERE ends_at <= ?');
  const bound = some<[string, number]>('WHERE administrator = ? ORDER BY created_at DESC, position DESC OFFSET ?');
  const touch = db.prepare<[number, string]>('UPDATE session SET seen_at = ? WHERE id_hash = ?');
  const end = db.prepare<[string]>('DELETE FROM session WHERE id_hash = ?');
  return {
    async createSession(
      row: SessionRow,
      replaces: string | null,
      events: readonly AuditEvent[],
    ): Promise<Outcome<undefined>> {
      await forget.run(row.created_at);
      if (replaces !== null) await end.run(replaces);
      await insert.run(row);
      await bound.run(row.administrator, MAX_SESSIONS);
      return done(undefined, events);
    },
    async touchSession(id_hash: string, seen_at: number): Promise<Outcome<undefined>> {
      await touch.run(seen_at, id_hash);
      return undone(undefined);
    },
    async deleteSession(id_hash: string, events: readonly AuditEvent[]): Promise<Outcome<boolean>> {
      return (await end.run(id_hash)) === 1 ? done(true, events) : undone(false);
    },
  };
}
