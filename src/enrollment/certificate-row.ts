import { hash } from 'node:crypto';
import { parseCertificate, type IssuedContent } from '../pki/x509/certificate.ts';
import { formatGeneralName } from '../pki/x509/general-name.ts';
import { formatName } from '../pki/x509/name.ts';
import type { CertificateRow } from '../store/certificate-store.ts';

export type CertificateOwner = Pick<CertificateRow, 'ca' | 'requester' | 'method' | 'request_id'> &
  Partial<Pick<CertificateRow, 'label' | 'archived_key_id' | 'revocation_challenge' | DeviceColumn>>;

type DeviceColumn = 'device' | 'device_key' | 'required_device';

/**
 * The record of an issued certificate.
 * @param der of the certificate
 * @param certificate parsed content, if its CA has read it
 * @throws DerError
 */
export function certificateRow(
  der: Buffer,
  owner: CertificateOwner,
  certificate: IssuedContent = parseCertificate(der),
): CertificateRow {
  return {
    label: null,
    archived_key_id: null,
    revocation_challenge: null,
    device: null,
    device_key: null,
    required_device: null,
    ...owner,
    serial: certificate.serialNumber,
    subject: formatName(certificate.subject),
    sans: certificate.subjectAltNames.map(formatGeneralName),
    not_before: certificate.notBefore.getTime(),
    not_after: certificate.notAfter.getTime(),
    der,
    fingerprint_sha256: hash('sha256', der, 'hex'),
    key_identifier: certificate.subjectKeyIdentifier?.toString('hex') ?? null,
    revoked_at: null,
    reason: null,
    invalidity_date: null,
  };
}
