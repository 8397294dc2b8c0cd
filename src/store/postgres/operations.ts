import type { SearchStore } from '../search-store.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { AuditLog } from './audit-log.ts';
import { refuseFullDisk } from '../audit-chain.ts';
import { auditReads, auditWrites } from './audit-rows.ts';
import { certificateReads, certificateWrites } from './certificates.ts';
import { deviceReads, deviceWrites } from './devices.ts';
import { issuanceReads, issuanceWrites } from './issuance.ts';
import { lockoutReads, lockoutWrites } from './lockout.ts';
import { otpUseReads } from './otp-uses.ts';
import { otpReads, otpWrites } from './otp.ts';
import { nodeReads } from './nodes/list.ts';
import type { Queries } from './queries.ts';
import { requestAtCaReads, requestAtCaWrites } from './requests-at-ca.ts';
import { requestReads, requestWrites } from './requests.ts';
import { retentionReads, retentionWrites } from './retention.ts';
import { later } from '../operations/port.ts';
import { commonReads, commonWrites } from '../operations/index.ts';
import { PostgresPort } from './port.ts';

/** Every read, by the name that {@link Store} has for it; each process asks for itself, over its own connections. */
export function readOperations(db: Queries, node: string) {
  return {
    ...later(commonReads(new PostgresPort(db))),
    ...otpReads(db),
    ...otpUseReads(db),
    ...lockoutReads(db),
    ...issuanceReads(db),
    ...certificateReads(db),
    ...deviceReads(db),
    ...requestReads(db),
    ...requestAtCaReads(db),
    ...auditReads(db),
    ...retentionReads(db, node),
    ...nodeReads(db),
    // The indexes of PostgreSQL are never behind.
    isSearchBehind: (): ReturnType<SearchStore['isSearchBehind']> => Promise.resolve(false),
  };
}

/** The condition on the instance of a CMC message that no living node has. */
const NO_NODE = 'NOT EXISTS (SELECT FROM node WHERE node.instance = cmc_message.instance)';

/** Every write, likewise, for the writer of this server (group-commit.ts); each returns what is to be audited with it. */
export function writeOperations(db: Queries, log: AuditLog, node: string) {
  const probe = db.prepare<[number]>('UPDATE probe SET at = ?');
  return {
    ...later(commonWrites(new PostgresPort(db), NO_NODE)),
    ...otpWrites(db),
    ...lockoutWrites(db),
    ...issuanceWrites(db),
    ...certificateWrites(db),
    ...deviceWrites(db),
    ...requestWrites(db),
    ...requestAtCaWrites(db),
    ...auditWrites(db, node),
    ...retentionWrites(db, node),
    indexForSearch: (): Promise<Outcome<boolean>> => Promise.resolve(undone(false)),
    async checkWritable(now: number): Promise<Outcome<undefined>> {
      await probe.run(now);
      const events = log.probe();
      refuseFullDisk(log.path);
      return done(undefined, events);
    },
  };
}

export type ReadOperations = ReturnType<typeof readOperations>;
export type WriteOperations = ReturnType<typeof writeOperations>;
