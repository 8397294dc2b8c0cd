import { refuseFullDisk } from '../audit-chain.ts';
import { done, type Outcome } from '../calls/calls.ts';
import type { NodeRow } from '../store.ts';
import { commonReads, commonWrites } from '../store.ts';
import { atOnce } from '../port.ts';
import type { AuditLog } from './audit-log.ts';
import { auditReads, auditWrites } from './audit.ts';
import type { Db } from './database.ts';
import { SqlitePort } from './port.ts';
import { certificateList } from './search/certificate-search.ts';
import { searchIndexReads, searchIndexWrites } from './search/index-rows.ts';

/** Reads that take microseconds, by name in {@link Store}; the main thread runs them. */
export function quickReads(db: Db) {
  return {
    ...atOnce(commonReads(new SqlitePort(db))),
    ...searchIndexReads(db),
    // One service owns the file.
    listNodes: (): readonly NodeRow[] => [],
  };
}

/** Slow calls, which a thread runs (reading-thread.ts) so that they do not delay other requests. */
export const SLOW = [
  ...['listCertificates', 'listAudit', 'auditLines', 'lastArchived', 'listOtps', 'listLockouts', 'listDevices'],
  ...['listDeviceAttributes', 'deviceHistory', 'revokedEntries', 'listRequests', 'findOverTokens', 'countEvents'],
  ...['countCertificatesByEnd', 'countWaiting', 'indexForSearch', 'checkpoint'],
] as const satisfies readonly (keyof ReturnType<typeof slowOperations>)[];

export function slowOperations(db: Db) {
  const index = searchIndexWrites(db);
  return {
    ...atOnce(commonReads(new SqlitePort(db))),
    ...certificateList(db),
    ...auditReads(db),
    indexForSearch: (): boolean => db.transaction(index).immediate(),
    checkpoint: (): void => void db.pragma('wal_checkpoint(PASSIVE)'),
  };
}

/** Every write. Each is part of a shared transaction (group-commit.ts), and returns its audit events. */
export function writeOperations(db: Db, log: AuditLog) {
  const probe = db.prepare<[number]>('UPDATE probe SET at = ?');
  return {
    // Every other process of this store is dead.
    ...atOnce(commonWrites(new SqlitePort(db), 'true')),
    ...auditWrites(db),
    checkWritable(now: number): Outcome<undefined> {
      probe.run(now);
      const events = log.chain.probe();
      refuseFullDisk(log.chain.path);
      return done(undefined, events);
    },
  };
}

export type QuickReads = ReturnType<typeof quickReads>;
export type SlowOperations = Pick<ReturnType<typeof slowOperations>, (typeof SLOW)[number]>;
export type WriteOperations = ReturnType<typeof writeOperations>;
