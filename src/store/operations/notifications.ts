import { done, undone } from '../calls/calls.ts';
import type { Database, Reads, Writes } from './port.ts';

interface Place {
  readonly node: string;
  readonly seq: number;
}

export function notificationReads(db: Database) {
  const places = db.prepare<[string], Place>('SELECT node, seq FROM notification WHERE name = ?');
  const chains = db.prepare<[], Place>(`SELECT ${db.dialect.auditNode} AS node, seq FROM audit_head`);
  return {
    *notificationPlaces(name) {
      return new Map((yield* places.all(name)).map(({ node, seq }) => [node, seq]));
    },
    *auditChains() {
      return new Map((yield* chains.all()).map(({ node, seq }) => [node, seq]));
    },
  } satisfies Reads;
}

export function notificationWrites(db: Database) {
  const begin = db.prepare<[string, string, number]>(
    'INSERT INTO notification (name, node, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const advance = db.prepare<[string, string, number]>(
    'INSERT INTO notification (name, node, seq) VALUES (?, ?, ?) ON CONFLICT (name, node) DO UPDATE SET seq = excluded.seq',
  );
  return {
    *beginNotification(name, places) {
      for (const [node, seq] of places) yield* begin.run(name, node, seq);
      return undone(undefined);
    },
    *advanceNotification(name, node, seq, events) {
      yield* advance.run(name, node, seq);
      return done(undefined, events);
    },
  } satisfies Writes;
}
