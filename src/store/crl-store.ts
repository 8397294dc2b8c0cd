import type { AuditEvent } from '../audit/event.ts';

export interface CrlRow {
  readonly ca: string;
  readonly number: number;
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

/** Revocation lists and their entries. */
export interface CrlStore {
  /** Number of the CA's latest CRL; undefined before the first. */
  crlNumber(ca: string): Promise<number | undefined>;
  crlHead(ca: string): Promise<CrlHead>;
  getCrl(ca: string): Promise<CrlRow | undefined>;
  /** Revoked certificates in order of issuance. @throws EstuaryError 500 `STORE_FAILED` for an invalid reason */
  revokedEntries(filter: RevokedFilter): Promise<RevokedEntries>;
  /** A number for the next CRL: higher than all earlier ones, even unused ones. */
  takeCrlNumber(ca: string): Promise<number>;
  /**
   * @param changes from {@link crlHead} before the entries were read
   * @returns `false`: a list with a higher number exists; nothing changed
   */
  saveCrl(row: CrlRow, changes: number, events: readonly AuditEvent[]): Promise<boolean>;
}
