import { hash } from 'node:crypto';
import { parseCertificate, type IssuedContent } from '../pki/x509/certificate.ts';
import { formatGeneralName } from '../pki/x509/general-name.ts';
import { formatName } from '../pki/x509/name.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { CertificateRow, ListedCertificate } from '../store/certificate-store.ts';

/** Whose certificate it is. */
export type CertificateOwner = Pick<CertificateRow, 'ca' | 'requester' | 'method' | 'request_id'> &
  Partial<Pick<CertificateRow, 'label' | 'archived_key_id' | 'revocation_challenge' | DeviceColumn>>;

type DeviceColumn = 'device' | 'device_key' | 'required_device';

/**
 * The record of a certificate that was just issued.
 *
 * @param der of the certificate
 * @param certificate what stands in it, where its CA has read that
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

/** What the audit records of its issue and its revocation say about a certificate: a restored store may know nothing else. */
export function issuedNames({
  subject,
  sans,
  not_after,
}: ListedCertificate): Pick<AuditEvent, 'certificate_subject' | 'certificate_sans' | 'certificate_not_after'> {
  return {
    certificate_subject: subject,
    certificate_sans: sans,
    certificate_not_after: new Date(not_after).toISOString(),
  };
}

/** By what an audit record tells which certificate it is about: its CA and serial number, and the label that it was asked for at. */
export function auditedCertificate({
  ca,
  label,
  serial,
}: Pick<CertificateRow, 'ca' | 'label' | 'serial'>): Pick<AuditEvent, 'ca' | 'label' | 'serial'> {
  return { ca, serial, ...(label === null ? {} : { label }) };
}
