/** Queued requests as rows: what is in a row, and what is made of it. */
import type { AuditEvent } from '../../audit/event.ts';
import { failed } from '../../errors.ts';
import type { Decider, RequestOverride, RequestRow } from '../request-store.ts';
import { readSans } from './certificate.ts';

export const REQUEST_COLUMNS =
  'id, ca, operation, subject, sans, key_type, requester, method, requester_id, requester_issuer, requester_sans, names, status, created_at, decided_at, reason, serial, csr, format, spki_sha256, otp_id, recognition, changed_at, decider, reference, missing_since, device, device_key, override, decided_by, approvals';

/** A row as databases have it. */
export type StoredRequest = Omit<RequestRow, 'sans' | 'requester_sans' | 'override' | 'decided_by'> & {
  readonly decided_by: string;
  readonly sans: string;
  readonly requester_sans: string;
  readonly override: string | null;
};

export const toRequestRow = (stored: StoredRequest): RequestRow => ({
  ...stored,
  sans: readSans(stored.sans, `request ${stored.id}`),
  requester_sans: readSans(stored.requester_sans, `the requester of request ${stored.id}`),
  override: stored.override === null ? null : readOverride(stored.override, stored.id),
  decided_by: readDeciders(stored.decided_by, stored.id),
});

export const toStoredRequest = (row: RequestRow): StoredRequest => ({
  ...row,
  sans: JSON.stringify(row.sans),
  requester_sans: JSON.stringify(row.requester_sans),
  override: row.override === null ? null : JSON.stringify(row.override),
  decided_by: JSON.stringify(row.decided_by),
});

function readOverride(json: string, id: string): RequestOverride {
  const value: unknown = JSON.parse(json);
  if (isOverride(value)) return value;
  throw failed('STORE_FAILED', 'the store failed', { detail: `request ${id}: override is none` });
}

function readDeciders(json: string, id: string): readonly Decider[] {
  const value: unknown = JSON.parse(json);
  if (Array.isArray(value) && value.every(isDecider)) return value;
  throw failed('STORE_FAILED', 'the store failed', { detail: `request ${id}: decided_by is no list of deciders` });
}

function isDecider(value: unknown): value is Decider {
  if (typeof value !== 'object' || value === null) return false;
  const { key, name } = value as Record<string, unknown>;
  return typeof key === 'string' && typeof name === 'string';
}

function isOverride(value: unknown): value is RequestOverride {
  if (typeof value !== 'object' || value === null) return false;
  const { subject, sans, validity_days } = value as Record<string, unknown>;
  return (
    (subject === undefined || typeof subject === 'string') &&
    (sans === undefined || (Array.isArray(sans) && sans.every((san) => typeof san === 'string'))) &&
    (validity_days === undefined || typeof validity_days === 'number')
  );
}

export type Expired = Pick<RequestRow, 'id' | 'ca' | 'requester' | 'decided_at'>;

/** What the audit log says of one that has expired. */
export function expiredEvent({ id, ca, requester, decided_at }: Expired): AuditEvent {
  const detail = decided_at === null ? 'nobody decided in time' : 'approved, but not collected in time';
  return { type: 'request.expired', outcome: 'success', subject: requester, ca, request_id: id, detail };
}
