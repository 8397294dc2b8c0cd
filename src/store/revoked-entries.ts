/** Rows of revoked certificates as entries of a CRL, made where they are read: of a hundred thousand, encoding is most of the work. */
import { failed } from '../errors.ts';
import { encodeCrlEntry } from '../pki/x509/crl-builder.ts';
import { isCrlReason } from '../pki/x509/crl-reasons.ts';
import type { RevokedEntries } from './crl-store.ts';

export interface RevokedRow {
  readonly position: number;
  readonly serial: string;
  readonly revoked_at: number;
  /** RFC 5280 CRLReason name. */
  readonly reason: string;
  readonly invalidity_date: number | null;
}

/** @throws EstuaryError 500 `STORE_FAILED` for a reason that is none */
export const toRevokedEntries = (rows: readonly RevokedRow[]): RevokedEntries => ({
  count: rows.length,
  last: rows.at(-1)?.position ?? 0,
  der: Buffer.concat(rows.map(encodeRow)),
});

function encodeRow({ serial, revoked_at, reason, invalidity_date }: RevokedRow): Buffer {
  if (!isCrlReason(reason))
    throw failed('STORE_FAILED', 'the store failed', { detail: `certificate ${serial}: no CRLReason "${reason}"` });
  return encodeCrlEntry({
    serialNumber: serial,
    revocationDate: new Date(revoked_at),
    reason,
    invalidityDate: invalidity_date === null ? undefined : new Date(invalidity_date),
  });
}
