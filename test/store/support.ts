import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AuditEvent } from '../../src/audit/event.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { CertificateRow, OtpRow, Reservation, Store } from '../../src/store/store.ts';

/** A fixed beginning for tests that set the clock. */
export const T0 = Date.UTC(2026, 0, 1);

export interface Paths {
  readonly folder: string;
  readonly path: string;
  readonly auditFile: string;
}

/** Names for a database and an audit file in a folder that goes with the test. */
export function temporaryPaths(): Paths {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-store-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { folder, path: join(folder, 'est.db'), auditFile: join(folder, 'audit.log') };
}

/** Opens a store that is closed when the test ends. */
export async function opened(paths: Paths, now?: () => number): Promise<Store> {
  const store = await openStore({ ...paths, ...(now === undefined ? {} : { now }) });
  onTestFinished(() => store.close());
  return store;
}

export const event = (type: AuditEvent['type'], more: Partial<AuditEvent> = {}): AuditEvent => ({
  type,
  outcome: 'success',
  ...more,
});

export function otpRow(more: Partial<OtpRow> = {}): OtpRow {
  const id = randomBytes(8).toString('hex');
  return {
    id,
    selector: `selector-${id}`,
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
    serial: randomBytes(16).toString('hex'),
    requester: 'otp:device-1',
    operation: 'simpleenroll',
    subject: 'CN=device-1',
    spki_sha256: '00'.repeat(32),
    otp_id: null,
    created_at: T0 + 1000,
    ...more,
  };
}

/** A certificate for a reservation. */
export function certificateRow(of: Reservation, more: Partial<CertificateRow> = {}): CertificateRow {
  return {
    ca: of.ca,
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
    revoked_at: null,
    reason: null,
    invalidity_date: null,
    ...more,
  };
}

/** Reserves and records a certificate. */
export async function issue(store: Store, more: Partial<CertificateRow> = {}): Promise<CertificateRow> {
  const intent = reservation({
    ...(more.ca === undefined ? {} : { ca: more.ca }),
    ...(more.serial === undefined ? {} : { serial: more.serial }),
  });
  const result = await store.reserve(intent, []);
  if (result !== 'reserved') throw new Error(result);
  const row = certificateRow(intent, more);
  await store.recordCertificate(row, []);
  return row;
}

/** The types of all audit records, in order. */
export async function auditTypes(store: Store): Promise<string[]> {
  return (await store.listAudit({ limit: 1000 })).items.map((record) => record.type);
}
