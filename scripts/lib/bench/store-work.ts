/** One enrollment as the store sees it: reserve (an OTP use, the intent, three audit records) and recordCertificate (900 bytes of DER, two audit records). */
import { randomBytes } from 'node:crypto';
import type { AuditEvent } from '../../../src/audit/event.ts';
import type { Store } from '../../../src/store/store.ts';

const DER = randomBytes(900);
/** The one-time password that all of them use. */
export const OTP_ID = 'bench';

function event(type: AuditEvent['type'], request_id: string, serial: string): AuditEvent {
  return {
    type,
    outcome: 'success',
    subject: 'CN=device-000001.example.com,O=Example',
    address: '192.0.2.1',
    ca: 'devices',
    serial,
    request_id,
  };
}

/** What the store does for an enrollment. @returns the serial number */
export async function enroll(store: Store): Promise<string> {
  const serial = randomBytes(16).toString('hex');
  const request_id = randomBytes(16).toString('hex');
  const now = Date.now();
  const common = {
    ca: 'devices',
    request_id,
    label: null,
    requester: 'otp:bench',
    subject: 'CN=device-000001.example.com,O=Example',
  };
  const audited = (...types: AuditEvent['type'][]): AuditEvent[] =>
    types.map((type) => event(type, request_id, serial));
  const result = await store.reserve(
    {
      ...common,
      instance: 'bench',
      serial,
      operation: 'simpleenroll',
      spki_sha256: serial + serial,
      device_key: null,
      required_device: null,
      otp_id: OTP_ID,
      created_at: now,
    },
    audited('auth.otp', 'request.received', 'otp.used'),
  );
  if (result !== 'reserved') throw new Error(result);
  await store.recordCertificate(
    {
      ...common,
      serial,
      sans: ['DNS:device-000001.example.com'],
      not_before: now,
      not_after: now + 397 * 86_400_000,
      der: DER,
      fingerprint_sha256: serial + serial,
      method: 'otp',
      key_identifier: null,
      device: null,
      device_key: null,
      required_device: null,
      archived_key_id: null,
      revocation_challenge: null,
      revoked_at: null,
      reason: null,
      invalidity_date: null,
    },
    audited('ca.signature', 'certificate.issued'),
  );
  return serial;
}

/** Makes the password. */
export async function insertBenchOtp(store: Store): Promise<void> {
  await store.insertOtp(
    {
      id: OTP_ID,
      lookup: OTP_ID,
      hash: '-',
      client_id: 'bench',
      ca: null,
      created_at: Date.now(),
      expires_at: Date.now() + 86_400_000,
      max_uses: 1e12,
      uses: 0,
      revoked_at: null,
    },
    [],
  );
}
