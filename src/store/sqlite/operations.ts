import { refuseFullDisk } from '../audit-chain.ts';
import type { AuditLog } from './audit-log.ts';
import { auditReads, auditWrites } from './audit-rows.ts';
import { certificateReads, certificateWrites } from './certificates.ts';
import type { Db } from './database.ts';
import { deviceReads, deviceWrites } from './devices.ts';
import { issuanceReads, issuanceWrites } from './issuance.ts';
import { lockoutReads, lockoutWrites } from './lockout.ts';
import { otpReads, otpWrites } from './otp.ts';
import { otpUseReads } from './otp-uses.ts';
import { done, type Outcome } from '../calls/outcome.ts';
import type { NodeRow } from '../node-store.ts';
import { requestAtCaReads, requestAtCaWrites } from './requests-at-ca.ts';
import { requestReads, requestWrites } from './requests.ts';
import { retentionReads, retentionWrites } from './retention.ts';
import { searchIndexReads, searchIndexWrites } from './search/index-rows.ts';
import { atOnce } from '../operations/port.ts';
import { commonReads, commonWrites } from '../operations/index.ts';
import { SqlitePort } from './port.ts';

/** Every read, by the name that {@link Store} has for it; the reading thread carries it out. */
export function readOperations(db: Db) {
  return {
    ...atOnce(commonReads(new SqlitePort(db))),
    ...otpReads(db),
    ...otpUseReads(db),
    ...lockoutReads(db),
    ...issuanceReads(db),
    ...certificateReads(db),
    ...deviceReads(db),
    ...requestReads(db),
    ...requestAtCaReads(db),
    ...auditReads(db),
    ...retentionReads(db),
    ...searchIndexReads(db),
    // One service has the file for itself.
    listNodes: (): readonly NodeRow[] => [],
  };
}

/**
 * Every write, likewise, for the writing thread. Each runs in a savepoint of a transaction that it shares with others
 * (group-commit.ts), and returns what is to be audited in it.
 */
export function writeOperations(db: Db, log: AuditLog) {
  const probe = db.prepare<[number]>('UPDATE probe SET at = ?');
  return {
    // Another process of this store is dead.
    ...atOnce(commonWrites(new SqlitePort(db), 'true')),
    ...otpWrites(db),
    ...lockoutWrites(db),
    ...issuanceWrites(db),
    ...certificateWrites(db),
    ...deviceWrites(db),
    ...requestWrites(db),
    ...requestAtCaWrites(db),
    ...searchIndexWrites(db),
    ...auditWrites(),
    ...retentionWrites(db),
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
