import { done, type Events, undone } from './calls/calls.ts';
import type { Calls, Database, Operation, Write } from './port.ts';

interface Place {
  readonly node: string;
  readonly seq: number;
}

export function notificationReads(db: Database) {
  const places = db.prepare<[string], Place>('SELECT node, seq FROM notification WHERE name = ?');
  const chains = db.prepare<[], Place>(`SELECT ${db.dialect.auditNode} AS node, seq FROM audit_head`);
  return {
    /** By node. A driver with one chain has the node ''. */
    *notificationPlaces(name: string): Operation<ReadonlyMap<string, number>> {
      return new Map((yield* places.all(name)).map(({ node, seq }) => [node, seq]));
    },
    /** The chains of audit records, with their newest record. */
    *auditChains(): Operation<ReadonlyMap<string, number>> {
      return new Map((yield* chains.all()).map(({ node, seq }) => [node, seq]));
    },
  };
}

export function notificationWrites(db: Database) {
  const begin = db.prepare<[string, string, number]>(
    'INSERT INTO notification (name, node, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const advance = db.prepare<[string, string, number]>(
    'INSERT INTO notification (name, node, seq) VALUES (?, ?, ?) ON CONFLICT (name, node) DO UPDATE SET seq = excluded.seq',
  );
  return {
    /** Sets places that do not exist yet. */
    *beginNotification(name: string, places: ReadonlyMap<string, number>): Write<void> {
      for (const [node, seq] of places) yield* begin.run(name, node, seq);
      return undone(undefined);
    },
    *advanceNotification(name: string, node: string, seq: number, events: Events): Write<void> {
      yield* advance.run(name, node, seq);
      return done(undefined, events);
    },
  };
}

/** Where the delivery to a receiver is: the last audit record of each node's chain that is done. */
export type NotificationStore = Calls<ReturnType<typeof notificationReads> & ReturnType<typeof notificationWrites>>;
