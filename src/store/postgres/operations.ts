import { refuseFullDisk } from '../audit-chain.ts';
import { done, undone } from '../calls/calls.ts';
import { commonReads, commonWrites } from '../store.ts';
import { beginWork, EVERYTHING, lock, quickRead, write } from '../operation.ts';
import { type Operation, result, type Database, type Write } from '../port.ts';
import { rejectionWrites } from '../statistics-store.ts';
import type { AuditLog } from './audit-log.ts';
import { auditReads, auditWrites } from './audit.ts';
import { certificateList, PostgresPort } from './port.ts';
import type { Queries } from './queries.ts';
import type { NodeRow } from '../store.ts';
import { LEASE } from './nodes/node-lease.ts';

/** Every read by its name in {@link Store}; each process reads over its own connections. */
export function readOperations(queries: Queries, node: string) {
  const db = new PostgresPort(queries);
  return {
    ...commonReads(db),
    ...certificateList(db),
    ...auditReads(db, node),
    ...nodeReads(db),
    // PostgreSQL's indexes are always current.
    isSearchBehind: quickRead(() => result(false)),
  };
}

const NO_NODE = 'NOT EXISTS (SELECT FROM node WHERE node.instance = cmc_message.instance)';

/**
 * Inserts rows of typical size into the tables that grow with each enrollment, and rolls back: the probe's row alone is
 * updated in place, and succeeds on a full disk.
 */
const SPACE = `DO $$ BEGIN
  INSERT INTO reservation (request_id, instance, ca, requester, operation, subject, created_at)
    SELECT 'probe-' || n, 'probe', 'probe', repeat('x', 100), 'probe', repeat('x', 100), 0 FROM generate_series(1, 100) AS n;
  INSERT INTO certificate (ca, serial, subject, subject_folded, sans, sans_folded, not_before, not_after, der, fingerprint_sha256,
      requester, method, request_id)
    SELECT 'probe', 'probe-' || n, repeat('x', 100), 'x', '[]', '', 0, 0, decode(repeat('00', 800), 'hex'), 'x', 'x', 'x', 'x'
    FROM generate_series(1, 100) AS n;
  INSERT INTO audit (node, seq, time, type, line) SELECT '', -n, 0, 'probe', repeat('x', 800) FROM generate_series(1, 100) AS n;
  RAISE EXCEPTION SQLSTATE 'ESOK0';
EXCEPTION WHEN SQLSTATE 'ESOK0' THEN NULL;
END $$`;

/** Every write, for this node's writer (group-commit.ts); each returns its audit events. */
export function writeOperations(queries: Queries, log: AuditLog, node: string) {
  const db = new PostgresPort(queries);
  return {
    ...commonWrites(db, NO_NODE),
    ...rejectionWrites(db, node),
    ...auditWrites(db, node),
    indexForSearch: write(EVERYTHING, (): Write<boolean> => result(undone(false))),
    checkWritable: beginWork(lock.probe, function* (now: number): Write<undefined> {
      yield* db.run`UPDATE probe SET at = ${now}`;
      if (log.wasFull) yield* db.run(SPACE);
      log.wasFull = false;
      const events = log.chain.probe();
      refuseFullDisk(log.chain.path);
      return done(undefined, events);
    }),
  };
}

/** Lists the nodes. */
export function nodeReads(db: Database) {
  return {
    listNodes: quickRead(function* (): Operation<readonly NodeRow[]> {
      const nodes = yield* db.all<Omit<NodeRow, 'alive'>>`SELECT name, host,
          greatest(0, round(extract(epoch FROM clock_timestamp() - heartbeat) * 1000))::double precision AS age,
          EXISTS (SELECT FROM duty WHERE duty.incarnation = node.incarnation AND duty.until > clock_timestamp()) AS on_duty
        FROM node ORDER BY name`;
      return nodes.map((node) => ({ ...node, alive: node.age <= LEASE }));
    }),
  };
}
