/** Rows with sensible contents; without vitest, for child processes too. */
import { randomBytes } from 'node:crypto';
import type { AuditEvent } from '../../src/audit/event.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import type { DeviceRow } from '../../src/store/device-store.ts';
import type { Reservation } from '../../src/store/issuance-store.ts';
import type { OtpRow } from '../../src/store/otp-store.ts';
import type { RequestRow } from '../../src/store/request-store.ts';

/** A fixed beginning for tests that set the clock. */
export const T0 = Date.UTC(2026, 0, 1);

export const event = (type: AuditEvent['type'], more: Partial<AuditEvent> = {}): AuditEvent => ({
  type,
  outcome: 'success',
  ...more,
});

export function otpRow(more: Partial<OtpRow> = {}): OtpRow {
  const id = randomBytes(8).toString('hex');
  return {
    id,
    lookup: randomBytes(32).toString('hex'),
    hash: '$argon2id$v=19$…',
    client_id: 'device-1',
    ca: null,
    created_at: T0,
    expires_at: T0 + 86_400_000,
    max_uses: 1,
    uses: 0,
    revoked_at: null,
    ...more,
  };
}

export function reservation(more: Partial<Reservation> = {}): Reservation {
  return {
    request_id: randomBytes(8).toString('hex'),
    instance: 'this-process',
    ca: 'devices',
    label: null,
    serial: randomBytes(16).toString('hex'),
    requester: 'otp:device-1',
    operation: 'simpleenroll',
    subject: 'CN=device-1',
    spki_sha256: '00'.repeat(32),
    otp_id: null,
    device_key: null,
    required_device: more.device_key ?? null,
    created_at: T0 + 1000,
    ...more,
  };
}

export function requestRow(more: Partial<RequestRow> = {}): RequestRow {
  return {
    id: randomBytes(8).toString('hex'),
    ca: 'devices',
    operation: 'simpleenroll',
    subject: 'CN=device-1',
    sans: ['DNS:device-1.example'],
    key_type: 'ec:P-256',
    requester: 'device-1',
    method: 'otp',
    requester_id: 'otp:1',
    requester_issuer: null,
    requester_sans: [],
    names: '{}',
    status: 'pending',
    created_at: T0,
    decided_at: null,
    reason: null,
    serial: null,
    csr: randomBytes(300),
    format: 'pkcs10',
    spki_sha256: '00'.repeat(32),
    otp_id: null,
    recognition: randomBytes(32).toString('hex'),
    changed_at: T0,
    decider: 'admin',
    reference: null,
    missing_since: null,
    device: null,
    device_key: null,
    required_device: more.device_key ?? null,
    override: null,
    decided_by: [],
    approvals: 1,
    ...more,
  };
}

/** A certificate for a reservation. */
export function certificateRow(of: Reservation, more: Partial<CertificateRow> = {}): CertificateRow {
  return {
    ca: of.ca,
    label: of.label,
    serial: of.serial ?? randomBytes(16).toString('hex'),
    subject: of.subject,
    sans: ['DNS:device-1.example', 'IP:192.0.2.1'],
    not_before: T0,
    not_after: T0 + 397 * 86_400_000,
    der: randomBytes(600),
    fingerprint_sha256: randomBytes(32).toString('hex'),
    requester: of.requester,
    method: 'otp',
    request_id: of.request_id,
    device: null,
    device_key: null,
    required_device: more.device_key ?? null,
    key_identifier: null,
    archived_key_id: null,
    revocation_challenge: null,
    revoked_at: null,
    reason: null,
    invalidity_date: null,
    ...more,
  };
}

export function deviceRow(more: Partial<DeviceRow> = {}): DeviceRow {
  return {
    key: randomBytes(8).toString('hex'),
    id: 'device-1',
    ca: null,
    enabled: true,
    not_after: null,
    note: null,
    match: null,
    attributes: {},
    created_at: T0,
    changed_at: T0,
    ...more,
  };
}
