import type { AuditEvent } from '../../audit/event.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { CrlRow, RevokedEntries, RevokedFilter } from '../crl-store.ts';
import { type RevokedRow, toRevokedEntries } from '../revoked-entries.ts';
import type { Queries } from './queries.ts';

/** The reads for revocation lists. */
export function crlReads(db: Queries) {
  const numberOf = db.prepare<[string], { number: number | null }>('SELECT number FROM crl WHERE ca = ?');
  const latest = db.prepare<[string], CrlRow>(
    'SELECT ca, number, this_update, next_update, der FROM crl WHERE ca = ? AND number IS NOT NULL',
  );
  const revoked = db.prepare<RevokedFilter, RevokedRow>(
    `SELECT position, serial, revoked_at, reason, invalidity_date FROM certificate
     WHERE ca = @ca AND revoked_at <= @revoked_until AND not_after >= @valid_at AND position > @after
     ORDER BY position LIMIT @limit`,
  );
  return {
    crlNumber: async (ca: string): Promise<number | undefined> => (await numberOf.get(ca))?.number ?? undefined,
    getCrl: (ca: string): Promise<CrlRow | undefined> => latest.get(ca),
    revokedEntries: async (filter: RevokedFilter): Promise<RevokedEntries> =>
      toRevokedEntries(await revoked.all(filter)),
  };
}

/** The writes of revocation lists. */
export function crlWrites(db: Queries) {
  const take = db.prepare<[string], { last_number: number }>(
    `INSERT INTO crl (ca, last_number) VALUES (?, 1)
     ON CONFLICT (ca) DO UPDATE SET last_number = crl.last_number + 1 RETURNING last_number`,
  );
  const save = db.prepare<CrlRow>(
    `UPDATE crl SET number = @number, this_update = @this_update, next_update = @next_update, der = @der
     WHERE ca = @ca AND (number IS NULL OR number < @number)`,
  );
  return {
    async takeCrlNumber(ca: string): Promise<Outcome<number>> {
      const row = await take.get(ca);
      if (row === undefined) throw new Error('no CRL number came back');
      return done(row.last_number, []);
    },
    async saveCrl(row: CrlRow, events: readonly AuditEvent[]): Promise<Outcome<boolean>> {
      return (await save.run(row)) === 1 ? done(true, events) : undone(false);
    },
  };
}
