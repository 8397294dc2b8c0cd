import type { AuditEvent } from '../../audit/event.ts';
import type { CrlRow, RevokedEntries, RevokedFilter } from '../crl-store.ts';
import { type RevokedRow, toRevokedEntries } from '../revoked-entries.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';

/** The reads for revocation lists. */
export function crlReads(db: Db) {
  const numberOf = db.prepare<[string], { number: number | null }>('SELECT number FROM crl WHERE ca = ?');
  const latest = db.prepare<[string], CrlRow>(
    'SELECT ca, number, this_update, next_update, der FROM crl WHERE ca = ? AND number IS NOT NULL',
  );
  const revoked = db.prepare<[RevokedFilter], RevokedRow>(
    `SELECT position, serial, revoked_at, reason, invalidity_date FROM certificate INDEXED BY crl_entry
     WHERE ca = @ca AND revoked_at IS NOT NULL AND revoked_at <= @revoked_until AND not_after >= @valid_at AND position > @after
     ORDER BY position LIMIT @limit`,
  );
  return {
    crlNumber: (ca: string): number | undefined => numberOf.get(ca)?.number ?? undefined,
    getCrl: (ca: string): CrlRow | undefined => latest.get(ca),
    revokedEntries: (filter: RevokedFilter): RevokedEntries => toRevokedEntries(revoked.all(filter)),
  };
}

/** The writes of revocation lists. */
export function crlWrites(db: Db) {
  const take = db.prepare<[string], { last_number: number }>(
    `INSERT INTO crl (ca, last_number) VALUES (?, 1)
     ON CONFLICT (ca) DO UPDATE SET last_number = last_number + 1 RETURNING last_number`,
  );
  const save = db.prepare<[CrlRow]>(
    `UPDATE crl SET number = @number, this_update = @this_update, next_update = @next_update, der = @der
     WHERE ca = @ca AND (number IS NULL OR number < @number)`,
  );
  return {
    takeCrlNumber(ca: string): Outcome<number> {
      const row = take.get(ca);
      if (row === undefined) throw new Error('no CRL number came back');
      return done(row.last_number, []);
    },
    saveCrl(row: CrlRow, events: readonly AuditEvent[]): Outcome<boolean> {
      return save.run(row).changes === 1 ? done(true, events) : undone(false);
    },
  };
}
