import type { AuditEvent } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';

/** The label that a record belongs to: where it was requested, if that is another than the CA's own. undefined: none. */
export const labelOf = ({ ca, label }: { readonly ca?: string | null; readonly label?: string | null }) =>
  label ?? ca ?? undefined;

export type CertificateStatus = 'valid' | 'revoked' | 'expired';

export interface CertificateRow {
  /** The CA whose key signed it, by its label. */
  readonly ca: string;
  /** The label that it was asked for at, where that is another than the CA's own. */
  readonly label: string | null;
  readonly serial: string;
  /** RFC 4514. */
  readonly subject: string;
  /** `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`. */
  readonly sans: readonly string[];
  readonly not_before: number;
  readonly not_after: number;
  /** Empty: a restored store knows it from the audit log alone (docs/guides/backup.md). */
  readonly der: Buffer;
  /** Hex SHA-256 of `der`. */
  readonly fingerprint_sha256: string;
  readonly requester: string;
  readonly method: string;
  readonly request_id: string;
  /** The id of its requester's device, and the key of that entry; null: its requester is not a registered device. */
  readonly device: string | null;
  readonly device_key: string | null;
  /** `device_key`, if the label issues to registered devices only: the certificate authenticates this device. */
  readonly required_device: string | null;
  /** Hex of its subjectKeyIdentifier extension. */
  readonly key_identifier: string | null;
  /** The key archive's identifier of the private key, where it was generated and archived. */
  readonly archived_key_id: string | null;
  /** The encoded hash of what its holder may have it revoked with; null: nothing. */
  readonly revocation_challenge: string | null;
  readonly revoked_at: number | null;
  /** RFC 5280 CRLReason name. */
  readonly reason: string | null;
  readonly invalidity_date: number | null;
}

/** Without the certificate itself: what a list shows. */
export type ListedCertificate = Omit<CertificateRow, 'der'>;

/** Which certificates; all that is given holds. */
export interface CertificateSelection {
  readonly ca?: string | undefined;
  /** A further label of a CA. */
  readonly label?: string | undefined;
  /** A part of the subject, upper and lower case alike. */
  readonly subject?: string | undefined;
  /** A part of one of the subjectAltNames, likewise. */
  readonly san?: string | undefined;
  readonly serial?: string | undefined;
  readonly requester?: string | undefined;
  /** A device's id, whichever entry of that id it was. */
  readonly device?: string | undefined;
  readonly device_key?: string | undefined;
  readonly status?: CertificateStatus | undefined;
  readonly issued_after?: number | undefined;
  readonly expires_before?: number | undefined;
  /** Only certificates that were requested at these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface CertificateFilter extends CertificateSelection, PageRequest {}

export interface Revocation {
  readonly ca: string;
  readonly serial: string;
  readonly revoked_at: number;
  /** RFC 5280 CRLReason name. */
  readonly reason: string;
  readonly invalidity_date: number | null;
}

export type RevokedCertificate = Pick<CertificateRow, 'ca' | 'serial' | 'der'>;

export type RevokeResult = 'revoked' | 'already-revoked' | 'unknown';
export type ReleaseResult = 'released' | 'not-held' | 'unknown';

/** The certificates that were issued. */
export interface CertificateStore {
  getCertificates(serial: string, ca?: string): Promise<readonly CertificateRow[]>;
  /** Whether a certificate of the CA is known that was asked for at another label than its own. */
  hasOtherLabels(ca: string): Promise<boolean>;
  /** Those of this serial that are revoked, of any CA: mostly none. Every request with a client certificate asks. */
  findRevoked(serial: string): Promise<readonly RevokedCertificate[]>;
  /** The certificate that a request came to, if the store has it. */
  findCertificateByRequest(request_id: string): Promise<CertificateRow | undefined>;
  /** By the subjectKeyIdentifier, hex; the newest first. */
  findCertificatesByKey(key_identifier: string): Promise<readonly CertificateRow[]>;
  /** In the order in which they were recorded. */
  listCertificates(filter: CertificateFilter, now: number): Promise<Page<ListedCertificate>>;
  /** Takes in a certificate that was issued before, or elsewhere, without a reservation. `known`: the store has its serial number of this CA. */
  importCertificate(row: CertificateRow, events: readonly AuditEvent[]): Promise<'imported' | 'known'>;
  /**
   * Marks a certificate revoked; the events are committed with `revoked` only. A held certificate gets the final reason, and keeps the time
   * of the hold as its revocation date.
   */
  revokeCertificate(revocation: Revocation, events: readonly AuditEvent[]): Promise<RevokeResult>;
  /** Ends a hold; the events are committed with `released` only. */
  releaseCertificate(
    held: Pick<Revocation, 'ca' | 'serial'>,
    now: number,
    events: readonly AuditEvent[],
  ): Promise<ReleaseResult>;
}
