import type { AuditEvent } from '../audit/event.ts';
import type { Page, PageRequest } from './page.ts';
import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import { isIssuedBy, namesMatch } from '../pki/x509/name-matching.ts';
import type { Name } from '../pki/x509/name.ts';

/** The label of a record: where it was requested if that differs from the CA's own; undefined without one. */
export const labelOf = ({ ca, label }: { readonly ca?: string | null; readonly label?: string | null }) =>
  label ?? ca ?? undefined;

export type CertificateStatus = 'valid' | 'revoked' | 'expired';

export interface CertificateRow {
  /** Label of the CA whose key signed it. */
  readonly ca: string;
  /** The label of the request, if it is not the CA's own. */
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
  /** ID of its requester's device, and key of that entry; null: the requester is not a registered device. */
  readonly device: string | null;
  readonly device_key: string | null;
  /** `device_key`, if the label issues only to registered devices: the certificate authenticates this device. */
  readonly required_device: string | null;
  /** Hex of its subjectKeyIdentifier extension. */
  readonly key_identifier: string | null;
  readonly archived_key_id: string | null;
  /** Encoded hash of the secret that authorizes revocation; null without one. */
  readonly revocation_challenge: string | null;
  readonly revoked_at: number | null;
  /** RFC 5280 CRLReason name. */
  readonly reason: string | null;
  readonly invalidity_date: number | null;
}

export type ListedCertificate = Omit<CertificateRow, 'der'>;

/** All given criteria must match. */
export interface CertificateSelection {
  readonly ca?: string | undefined;
  /** A further label of a CA. */
  readonly label?: string | undefined;
  /** A substring of the subject, ignoring case. */
  readonly subject?: string | undefined;
  /** A substring of a subjectAltName, ignoring case. */
  readonly san?: string | undefined;
  readonly serial?: string | undefined;
  readonly requester?: string | undefined;
  /** A device's ID in any of its entries. */
  readonly device?: string | undefined;
  readonly device_key?: string | undefined;
  readonly status?: CertificateStatus | undefined;
  readonly issued_after?: number | undefined;
  readonly expires_before?: number | undefined;
  /** Only certificates requested at these labels. */
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

export interface CertificateStore {
  getCertificates(serial: string, ca?: string): Promise<readonly CertificateRow[]>;
  /** Whether a certificate of the CA was requested at a label other than its own. */
  hasOtherLabels(ca: string): Promise<boolean>;
  /**
   * Revoked certificates with this serial number, of any CA; usually none. Each request with a client certificate calls
   * it.
   */
  findRevoked(serial: string): Promise<readonly RevokedCertificate[]>;
  findCertificateByRequest(request_id: string): Promise<CertificateRow | undefined>;
  /** By subjectKeyIdentifier (hex), newest first. */
  findCertificatesByKey(key_identifier: string): Promise<readonly CertificateRow[]>;
  /** In insertion order. */
  listCertificates(filter: CertificateFilter, now: number): Promise<Page<ListedCertificate>>;
  /** Imports an existing certificate without a reservation. `known`: the store has this serial number of this CA. */
  importCertificate(row: CertificateRow, events: readonly AuditEvent[]): Promise<'imported' | 'known'>;
  /**
   * Marks a certificate revoked; commits the events with `revoked` only. A held certificate gets the final reason and
   * keeps the time of the hold as its revocation date.
   */
  revokeCertificate(revocation: Revocation, events: readonly AuditEvent[]): Promise<RevokeResult>;
  /** Ends a hold; commits the events with `released` only. */
  releaseCertificate(
    held: Pick<Revocation, 'ca' | 'serial'>,
    now: number,
    events: readonly AuditEvent[],
  ): Promise<ReleaseResult>;
}

/** A certificate, and its issuer in the validated path; undefined without a path. */
export interface IssuedCertificate {
  readonly certificate: Certificate;
  readonly issuer: Certificate | undefined;
}

/**
 * Whether a row found by serial number has this issuer name. A restored row may lack its certificate; then the serial
 * number suffices, which is random and has at least 64 bits.
 */
export function isOfIssuer({ der }: Pick<CertificateRow, 'der'>, issuer: Name): boolean {
  return der.length === 0 || namesMatch(parseCertificate(der).issuer, issuer);
}

/**
 * Whether a row found by serial number is the record of a certificate: same issuer, by name and key. The encodings may
 * differ, because anyone can change an ECDSA signature (r, s) to (r, n − s).
 */
export async function isRecordOf(
  row: Pick<CertificateRow, 'der'>,
  { certificate, issuer }: IssuedCertificate,
): Promise<boolean> {
  if (issuer === undefined || row.der.length === 0) return isOfIssuer(row, certificate.issuer);
  return row.der.equals(certificate.der) || isIssuedBy(parseCertificate(row.der), issuer);
}
