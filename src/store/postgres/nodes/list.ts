import type { NodeRow } from '../../node-store.ts';
import type { Database, Operation } from '../../operations/port.ts';
import { LEASE } from './node-lease.ts';

/** Lists the nodes. */
export function nodeReads(db: Database) {
  const nodes = db.prepare<[], Omit<NodeRow, 'alive'>>(
    `SELECT name, host, greatest(0, round(extract(epoch FROM clock_timestamp() - heartbeat) * 1000))::double precision AS age,
       EXISTS (SELECT FROM duty WHERE duty.incarnation = node.incarnation AND duty.until > clock_timestamp()) AS on_duty
     FROM node ORDER BY name`,
  );
  return {
    *listNodes(): Operation<readonly NodeRow[]> {
      return (yield* nodes.all()).map((one) => ({ ...one, alive: one.age <= LEASE }));
    },
  };
}
