import { done, undone } from '../calls/calls.ts';
import { MAX_SESSIONS, SESSION_COLUMNS, type SessionRow } from '../session-store.ts';
import { type Database, NO_LIMIT, type Reads, type Writes } from './port.ts';

export function sessionReads(db: Database) {
  const byHash = db.prepare<[string], SessionRow>(`SELECT ${SESSION_COLUMNS} FROM session WHERE id_hash = ?`);
  return { getSession: (id_hash) => byHash.get(id_hash) } satisfies Reads;
}

export function sessionWrites(db: Database) {
  const insert = db.prepare<SessionRow>(
    `INSERT INTO session (${SESSION_COLUMNS})
     VALUES (@id_hash, @administrator, @method, @claims, @certificate, @created_at, @seen_at, @ends_at)`,
  );
  const remove = <Parameters extends readonly unknown[]>(selection: string) =>
    db.prepare<Parameters>(`DELETE FROM session WHERE ${db.dialect.among('session', 'position', selection)}`);
  const forget = remove<[number]>('WHERE ends_at <= ?');
  const bound = remove<[string, number]>(
    `WHERE administrator = ? ORDER BY created_at DESC, position DESC ${NO_LIMIT} OFFSET ?`,
  );
  const touch = db.prepare<[number, string]>('UPDATE session SET seen_at = ? WHERE id_hash = ?');
  const end = db.prepare<[string]>('DELETE FROM session WHERE id_hash = ?');
  return {
    *createSession(row, replaces, events) {
      yield* forget.run(row.created_at);
      if (replaces !== null) yield* end.run(replaces);
      yield* insert.run(row);
      yield* bound.run(row.administrator, MAX_SESSIONS);
      return done(undefined, events);
    },
    *touchSession(id_hash, seen_at) {
      yield* touch.run(seen_at, id_hash);
      return undone(undefined);
    },
    *deleteSession(id_hash, events) {
      return (yield* end.run(id_hash)) === 1 ? done(true, events) : undone(false);
    },
  } satisfies Writes;
}
