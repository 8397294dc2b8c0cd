import { done, type Events, undone } from './calls/calls.ts';
import { type Calls, lock, quickRead, write } from './operation.ts';
import type { Database, Operation, Write } from './port.ts';

interface Place {
  readonly node: string;
  readonly seq: number;
}

type Places = ReadonlyMap<string, number>;

const byNode = (places: readonly Place[]): Places => new Map(places.map(({ node, seq }) => [node, seq]));

export function notificationReads(db: Database) {
  return {
    /** By node. A driver with one chain has the node ''. */
    notificationPlaces: quickRead(function* (name: string): Operation<Places> {
      return byNode(yield* db.all<Place>`SELECT node, seq FROM notification WHERE name = ${name}`);
    }),
    /** The chains of audit records, with their newest record. */
    auditChains: quickRead(function* (): Operation<Places> {
      return byNode(yield* db.all<Place>(`SELECT ${db.dialect.auditNode} AS node, seq FROM audit_head`));
    }),
  };
}

export function notificationWrites(db: Database) {
  return {
    /** Sets places that do not exist yet. */
    beginNotification: write(lock.notification, function* (name: string, places: Places): Write<void> {
      for (const [node, seq] of places)
        yield* db.run`INSERT INTO notification (name, node, seq) VALUES (${name}, ${node}, ${seq}) ON CONFLICT DO NOTHING`;
      return undone(undefined);
    }),
    advanceNotification: write(
      lock.notification,
      function* (name: string, node: string, seq: number, events: Events): Write<void> {
        yield* db.run`INSERT INTO notification (name, node, seq) VALUES (${name}, ${node}, ${seq})
        ON CONFLICT (name, node) DO UPDATE SET seq = excluded.seq`;
        return done(undefined, events);
      },
    ),
  };
}

/** Where the delivery to a receiver is: the last audit record of each node's chain that is done. */
export type NotificationStore = Calls<ReturnType<typeof notificationReads> & ReturnType<typeof notificationWrites>>;
