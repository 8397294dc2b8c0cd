import { refuseFullDisk } from '../audit-chain.ts';
import { done, type Outcome } from '../calls/outcome.ts';
import type { NodeRow } from '../node-store.ts';
import { commonReads, commonWrites } from '../operations/index.ts';
import { atOnce } from '../operations/port.ts';
import type { AuditLog } from './audit-log.ts';
import { auditReads, auditWrites } from './audit.ts';
import type { Db } from './database.ts';
import { SqlitePort } from './port.ts';
import { certificateList } from './search/certificate-search.ts';
import { searchIndexReads, searchIndexWrites } from './search/index-rows.ts';

/** Every read, by the name that {@link Store} has for it; the reading thread carries it out. */
export function readOperations(db: Db) {
  return {
    ...atOnce(commonReads(new SqlitePort(db))),
    ...certificateList(db),
    ...auditReads(db),
    ...searchIndexReads(db),
    // One service has the file for itself.
    listNodes: (): readonly NodeRow[] => [],
  };
}

/**
 * Every write, likewise, for the writing thread. Each is part of a transaction that it shares with others (group-commit.ts), and returns
 * what is to be audited in it.
 */
export function writeOperations(db: Db, log: AuditLog) {
  const probe = db.prepare<[number]>('UPDATE probe SET at = ?');
  return {
    // Every other process of this store is dead.
    ...atOnce(commonWrites(new SqlitePort(db), 'true')),
    ...auditWrites(db),
    ...searchIndexWrites(db),
    checkWritable(now: number): Outcome<undefined> {
      probe.run(now);
      const events = log.probe();
      refuseFullDisk(log.path);
      return done(undefined, events);
    },
  };
}

export type ReadOperations = ReturnType<typeof readOperations>;
export type WriteOperations = ReturnType<typeof writeOperations>;
