/** Revocation lists and their entries. */
import { storeFailed } from '../calls/errors.ts';
import { done, undone } from '../calls/calls.ts';
import type { CrlHead, CrlRow, RevokedFilter } from '../crl-store.ts';
import { encodeCrlEntry, isCrlReason } from '../../pki/x509/crl.ts';
import type { Database, Operation, Reads, Writes } from './port.ts';

interface RevokedRow {
  readonly position: number;
  readonly serial: string;
  readonly revoked_at: number;
  /** RFC 5280 CRLReason name. */
  readonly reason: string;
  readonly invalidity_date: number | null;
}

/** Encoded next to the database: for a hundred thousand entries, encoding is most of the work. */
function encodeRow({ serial, revoked_at, reason, invalidity_date }: RevokedRow): Buffer {
  if (!isCrlReason(reason)) throw storeFailed(`certificate ${serial}: no CRLReason "${reason}"`);
  return encodeCrlEntry({
    serialNumber: serial,
    revocationDate: new Date(revoked_at),
    reason,
    invalidityDate: invalidity_date === null ? undefined : new Date(invalidity_date),
  });
}

export function crlReads(db: Database) {
  const numberOf = db.prepare<[string], { number: number | null }>('SELECT number FROM crl WHERE ca = ?');
  const changesOf = db.prepare<[string], Pick<CrlHead, 'changes' | 'changed_at'>>(
    'SELECT changes, changed_at FROM crl_change WHERE ca = ?',
  );
  const latest = db.prepare<[string], CrlRow>(
    'SELECT ca, number, this_update, next_update, der FROM crl WHERE ca = ? AND number IS NOT NULL',
  );
  const revoked = db.prepare<RevokedFilter, RevokedRow>(
    `SELECT position, serial, revoked_at, reason, invalidity_date FROM certificate ${db.dialect.indexedBy('crl_entry')}
     WHERE ca = @ca AND revoked_at IS NOT NULL AND revoked_at <= @revoked_until AND not_after >= @valid_at AND position > @after
     ORDER BY position LIMIT @limit`,
  );
  function* crlNumber(ca: string): Operation<number | undefined> {
    return (yield* numberOf.get(ca))?.number ?? undefined;
  }
  return {
    crlNumber,
    *crlHead(ca) {
      // First: a list saved in between makes the CRL look older than it is, not newer.
      const { changes = 0, changed_at = null } = (yield* changesOf.get(ca)) ?? {};
      return { number: yield* crlNumber(ca), changes, changed_at };
    },
    getCrl: (ca) => latest.get(ca),
    *revokedEntries(filter) {
      const rows = yield* revoked.all(filter);
      return { count: rows.length, last: rows.at(-1)?.position ?? 0, der: Buffer.concat(rows.map(encodeRow)) };
    },
  } satisfies Reads;
}

export function crlWrites(db: Database) {
  const take = db.prepare<[string], { last_number: number }>(
    `INSERT INTO crl (ca, last_number) VALUES (?, 1)
     ON CONFLICT (ca) DO UPDATE SET last_number = crl.last_number + 1 RETURNING last_number`,
  );
  const save = db.prepare<CrlRow>(
    `UPDATE crl SET number = @number, this_update = @this_update, next_update = @next_update, der = @der
     WHERE ca = @ca AND (number IS NULL OR number < @number)`,
  );
  const covered = db.prepare<{ ca: string; changes: number; this_update: number }>(
    `UPDATE crl_change SET changed_at = CASE WHEN changes = @changes THEN NULL ELSE CAST(@this_update AS bigint) END
     WHERE ca = @ca AND changed_at IS NOT NULL`,
  );
  return {
    *takeCrlNumber(ca) {
      const row = yield* take.get(ca);
      if (row === undefined) throw new Error('the database returned no CRL number');
      return done(row.last_number, []);
    },
    *saveCrl(row, changes, events) {
      if ((yield* save.run(row)) === 0) return undone(false);
      yield* covered.run({ ca: row.ca, changes, this_update: row.this_update });
      return done(true, events);
    },
  } satisfies Writes;
}
