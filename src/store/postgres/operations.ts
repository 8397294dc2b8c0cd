import { refuseFullDisk } from '../audit-chain.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import { commonReads, commonWrites } from '../operations/index.ts';
import { later, type Operation, result } from '../operations/port.ts';
import type { AuditLog } from './audit-log.ts';
import { auditReads, auditWrites } from './audit.ts';
import { nodeReads } from './nodes/list.ts';
import { certificateList, PostgresPort } from './port.ts';
import type { Queries } from './queries.ts';

/** Every read, by the name that {@link Store} has for it; each process asks for itself, over its own connections. */
export function readOperations(queries: Queries, node: string) {
  const db = new PostgresPort(queries);
  return later({
    ...commonReads(db),
    ...certificateList(db),
    ...auditReads(db, node),
    ...nodeReads(db),
    // The indexes of PostgreSQL are never behind.
    isSearchBehind: (): Operation<boolean> => result(false),
  });
}

/** The condition on the instance of a CMC message that no living node has. */
const NO_NODE = 'NOT EXISTS (SELECT FROM node WHERE node.instance = cmc_message.instance)';

/** Every write, likewise, for the writer of this node (group-commit.ts); each returns what is to be audited with it. */
export function writeOperations(queries: Queries, log: AuditLog, node: string) {
  const db = new PostgresPort(queries);
  const probe = db.prepare<[number]>('UPDATE probe SET at = ?');
  return later({
    ...commonWrites(db, NO_NODE),
    ...auditWrites(db, node),
    indexForSearch: (): Operation<Outcome<boolean>> => result(undone(false)),
    *checkWritable(now: number): Operation<Outcome<undefined>> {
      yield* probe.run(now);
      const events = log.probe();
      refuseFullDisk(log.path);
      return done(undefined, events);
    },
  });
}

export type ReadOperations = ReturnType<typeof readOperations>;
export type WriteOperations = ReturnType<typeof writeOperations>;
