/** Certificates as rows: what is in a row, and what is made of it. */
import { failed } from '../../errors.ts';
import type { CertificateRow } from '../certificate-store.ts';

export const CERTIFICATE_COLUMNS =
  'ca, label, serial, subject, sans, not_before, not_after, der, fingerprint_sha256, requester, method, request_id, device, device_key, key_identifier, archived_key_id, revocation_challenge, revoked_at, reason, invalidity_date';

export const LISTED_COLUMNS = CERTIFICATE_COLUMNS.replace(' der,', '');

/** Certificates of one key that are looked at. */
export const SAME_KEY = 8;

/** A row as databases have it. */
export type StoredCertificate = Omit<CertificateRow, 'sans'> & { readonly sans: string };

export function toCertificateRow<Stored extends Pick<StoredCertificate, 'ca' | 'serial' | 'sans'>>(
  stored: Stored,
): Omit<Stored, 'sans'> & Pick<CertificateRow, 'sans'> {
  return { ...stored, sans: readSans(stored.sans, `certificate ${stored.ca} ${stored.serial}`) };
}

/** The names of a `sans` column. @throws EstuaryError 500 `STORE_FAILED` that names the row */
export function readSans(json: string, row: string): readonly string[] {
  const sans: unknown = JSON.parse(json);
  if (Array.isArray(sans) && sans.every((san) => typeof san === 'string')) return sans;
  throw failed('STORE_FAILED', 'the store failed', { detail: `${row}: sans is no list of strings` });
}

/** An imported row, of which a restore had left what the audit log tells: who got it, and whether it was revoked. */
export function completedRow(restored: StoredCertificate, row: CertificateRow): CertificateRow {
  const { der, fingerprint_sha256, key_identifier, subject, sans, not_before, not_after } = row;
  return { ...restored, der, fingerprint_sha256, key_identifier, subject, sans, not_before, not_after };
}
