/** Revocation lists and their entries. */
import { encodeCrlEntry, isCrlReason } from '../pki/x509/crl.ts';
import { done, type Events, undone } from './calls/calls.ts';
import type { Revocation } from './certificate-store.ts';
import { storeFailed } from './calls/errors.ts';
import { type Calls, lock, quickRead, slowRead, write } from './operation.ts';
import type { Database, Operation, Write } from './port.ts';

export interface CrlRow {
  readonly ca: string;
  readonly number: number;
  /** When it was signed; its own thisUpdate is earlier (publication/clocks.ts). */
  readonly this_update: number;
  readonly next_update: number;
  readonly der: Buffer;
}

export interface RevokedFilter {
  readonly ca: string;
  /** Revoked at this time or before. */
  readonly revoked_until: number;
  /** Not expired at this time. */
  readonly valid_at: number;
  /** Position of the last row of the previous page; 0 for the first. */
  readonly after: number;
  readonly limit: number;
}

/** Some of the entries of a CRL. */
export interface RevokedEntries {
  readonly count: number;
  /** The position of the last of them. */
  readonly last: number;
  /** Time of the newest revocation among them; 0: none. */
  readonly newest: number;
  /** Concatenated DER elements of revokedCertificates (RFC 5280 §5.1). */
  readonly der: Buffer;
}

/** How current a CA's latest CRL is. */
export interface CrlHead {
  /** undefined: no CRL yet. */
  readonly number: number | undefined;
  /** Number of revocations and releases. */
  readonly changes: number;
  /** Time of the first change that is not in the CRL; null: none. */
  readonly changed_at: number | null;
}

type RevokedRow = Omit<Revocation, 'ca'> & { readonly position: number };

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

const CHANGES = 'SELECT changes, changed_at FROM crl_change WHERE ca = ?';

export function crlReads(db: Database) {
  return {
    crlHead: quickRead(function* (ca: string): Operation<CrlHead> {
      // First: a list saved in between makes the CRL look older than it is, not newer.
      const changed = yield* db.get<Omit<CrlHead, 'number'>>(CHANGES, ca);
      const list = yield* db.get<{ number: number | null }>`SELECT number FROM crl WHERE ca = ${ca}`;
      return { changes: 0, changed_at: null, ...changed, number: list?.number ?? undefined };
    }),
    getCrl: quickRead(
      (ca: string) =>
        db.get<CrlRow>`SELECT ca, number, this_update, next_update, der FROM crl WHERE ca = ${ca} AND number IS NOT NULL`,
    ),
    /** Revoked certificates in order of issuance. @throws EstuaryError 500 `STORE_FAILED` for an invalid reason */
    revokedEntries: slowRead(function* (filter: RevokedFilter): Operation<RevokedEntries> {
      const rows = yield* db.all<RevokedRow>(
        `SELECT position, serial, revoked_at, reason, invalidity_date FROM certificate INDEXED BY crl_entry
         WHERE ca = @ca AND revoked_at IS NOT NULL AND revoked_at <= @revoked_until AND not_after >= @valid_at
         AND position > @after ORDER BY position LIMIT @limit`,
        filter,
      );
      const newest = rows.reduce((time, { revoked_at }) => Math.max(time, revoked_at), 0);
      const last = rows.at(-1)?.position ?? 0;
      return { count: rows.length, last, newest, der: Buffer.concat(rows.map(encodeRow)) };
    }),
  };
}

const SAVE = `UPDATE crl SET number = @number, this_update = @this_update, next_update = @next_update, der = @der
  WHERE ca = @ca AND (number IS NULL OR number < @number)`;

const listOf = ({ ca }: CrlRow) => lock.list(ca);

export function crlWrites(db: Database) {
  return {
    /** A number for the next CRL: higher than all earlier ones, even unused ones. */
    takeCrlNumber: write(lock.list, function* (ca: string): Write<number> {
      const row = yield* db.get<{ last_number: number }>`INSERT INTO crl (ca, last_number) VALUES (${ca}, 1)
        ON CONFLICT (ca) DO UPDATE SET last_number = crl.last_number + 1 RETURNING last_number`;
      if (row === undefined) throw new Error('the database returned no CRL number');
      return done(row.last_number, []);
    }),
    /**
     * @param changes from {@link crlHead} before the entries were read
     * @returns `false`: a list with a higher number exists; nothing changed
     */
    saveCrl: write(listOf, function* (row: CrlRow, changes: number, events: Events): Write<boolean> {
      if ((yield* db.run(SAVE, row)) === 0) return undone(false);
      yield* db.run`UPDATE crl_change
        SET changed_at = CASE WHEN changes = ${changes} THEN NULL ELSE CAST(${row.this_update} AS bigint) END
        WHERE ca = ${row.ca} AND changed_at IS NOT NULL`;
      return done(true, events);
    }),
  };
}

/** Revocation lists and their entries. */
export type CrlStore = Calls<ReturnType<typeof crlReads> & ReturnType<typeof crlWrites>>;
