import type { AuditEvent } from '../audit/event.ts';

/** A CA's latest CRL. */
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
  /** The position of the last row of the page before; 0 for the first. */
  readonly after: number;
  readonly limit: number;
}

/** Some of the entries of a CRL. */
export interface RevokedEntries {
  readonly count: number;
  /** The position of the last of them. */
  readonly last: number;
  /** DER elements of revokedCertificates (RFC 5280 §5.1), one behind the other. */
  readonly der: Buffer;
}

/** How current a CA's latest CRL is. */
export interface CrlHead {
  /** undefined: there is no CRL yet. */
  readonly number: number | undefined;
  /** How many revocations and releases there were. */
  readonly changes: number;
  /** When the first of them came that is not in the CRL, ms; null: it has all. */
  readonly changed_at: number | null;
}

/** The revocation lists, and what goes into them. */
export interface CrlStore {
  /** The number of the CA's latest CRL; undefined before the first. */
  crlNumber(ca: string): Promise<number | undefined>;
  crlHead(ca: string): Promise<CrlHead>;
  getCrl(ca: string): Promise<CrlRow | undefined>;
  /** Revoked certificates in the order of their issuance. @throws EstuaryError 500 `STORE_FAILED` for a reason that is none */
  revokedEntries(filter: RevokedFilter): Promise<RevokedEntries>;
  /** A number for a CRL to come: higher than every one before, also those of lists that never came to be. */
  takeCrlNumber(ca: string): Promise<number>;
  /**
   * @param changes as {@link crlHead} returned it before the entries were read
   * @returns `false`: there is a list with a higher number already; nothing changed
   */
  saveCrl(row: CrlRow, changes: number, events: readonly AuditEvent[]): Promise<boolean>;
}
