import { refuseFullDisk } from '../audit-chain.ts';
import { done } from '../calls/calls.ts';
import { beginWork, lock, quickRead, slowRead } from '../operation.ts';
import { result, type Write } from '../port.ts';
import type { NodeRow } from '../store.ts';
import { commonReads, commonWrites } from '../store.ts';
import { rejectionWrites } from '../statistics-store.ts';
import type { AuditLog } from './audit-log.ts';
import { auditReads, auditWrites } from './audit.ts';
import type { Db } from './database.ts';
import { SqlitePort } from './port.ts';
import { certificateList } from './search/certificate-search.ts';
import { searchIndexReads, searchIndexWrites } from './search/index-rows.ts';

/** Every read, and the work on the database that the reading thread does in between. */
export function readOperations(db: Db) {
  const index = searchIndexWrites(db);
  return {
    ...commonReads(new SqlitePort(db)),
    ...certificateList(db),
    ...auditReads(db),
    ...searchIndexReads(db),
    // One service owns the file.
    listNodes: quickRead(() => result<readonly NodeRow[]>([])),
    indexForSearch: slowRead(() => result<boolean>(db.transaction(index).immediate())),
    checkpoint: slowRead(() => result(void db.pragma('wal_checkpoint(PASSIVE)'))),
  };
}

/** Every write. Each is part of a shared transaction (group-commit.ts), and returns its audit events. */
export function writeOperations(db: Db, log: AuditLog) {
  const probe = db.prepare<[number]>('UPDATE probe SET at = ?');
  return {
    // Every other process of this store is dead.
    ...commonWrites(new SqlitePort(db), 'true'),
    ...rejectionWrites(new SqlitePort(db)),
    ...auditWrites(db),
    checkWritable: beginWork(lock.probe, (now: number): Write<undefined> => {
      probe.run(now);
      const events = log.chain.probe();
      refuseFullDisk(log.chain.path);
      return result(done(undefined, events));
    }),
  };
}
