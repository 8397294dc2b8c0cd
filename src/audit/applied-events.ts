/**
 * The audit events that a restore applies (store/replay.ts). Each kind has one writer, which requires every fact that the restore
 * reads.
 */
import type { AuditEvent, AuditType } from './event.ts';

/** The actor and the network address. */
export type By = Partial<AuditEvent>;

interface CertificateKey {
  readonly ca: string;
  /** The label of the request; null: the CA's own. */
  readonly label: string | null;
  readonly serial: string;
}

interface CertificateNames extends CertificateKey {
  readonly subject: string;
  readonly sans: readonly string[];
  readonly not_after: number;
}

interface OwnedCertificate extends CertificateNames {
  readonly requester: string;
  readonly method: string;
  readonly request_id: string;
  readonly device: string | null;
  readonly device_key: string | null;
  /** `device_key`, if the label issues to registered devices only. */
  readonly required_device: string | null;
}

export function auditedCertificate({ ca, label, serial }: CertificateKey): Pick<AuditEvent, 'ca' | 'label' | 'serial'> {
  return { ca, serial, ...(label === null ? {} : { label }) };
}

function certificateFacts(row: CertificateNames): By {
  return {
    ...auditedCertificate(row),
    certificate_subject: row.subject,
    certificate_sans: row.sans,
    certificate_not_after: new Date(row.not_after).toISOString(),
  };
}

function ownedBy(row: OwnedCertificate, subject: string): By {
  const { requester, method, request_id, device, device_key, required_device } = row;
  return {
    subject,
    method,
    request_id,
    ...(requester === subject ? {} : { requester }),
    ...(device === null ? {} : { device }),
    ...(device_key === null ? {} : { device_key }),
    ...(required_device === null ? {} : { device_required: true }),
  };
}

/**
 * @param by the requester, who is the owner by default
 * @param names the authorized names, if the CA certified others
 */
export function certificateIssued(by: By, row: OwnedCertificate, operation: string, names?: string): AuditEvent {
  return {
    ...by,
    ...ownedBy(row, by.subject ?? row.requester),
    ...certificateFacts(row),
    ...(names === undefined ? {} : { authorized_names: names }),
    type: 'certificate.issued',
    outcome: 'success',
    operation,
    detail: operation,
  };
}

export function certificateImported(by: By, row: OwnedCertificate): AuditEvent {
  return {
    ...by,
    ...ownedBy(row, row.requester),
    ...certificateFacts(row),
    type: 'certificate.imported',
    outcome: 'success',
  };
}

/** No certificate was issued for the request. */
export function certificateFailed(by: By & { readonly request_id: string }, detail: string): AuditEvent {
  return { ...by, type: 'certificate.failed', outcome: 'failure', detail };
}

interface AuditedRevocation {
  readonly reason: string;
  readonly invalidity_date: number | null;
}

export function certificateRevoked(
  by: By,
  row: CertificateNames,
  { reason, invalidity_date }: AuditedRevocation,
): AuditEvent {
  const since = invalidity_date === null ? undefined : new Date(invalidity_date).toISOString();
  return {
    ...by,
    ...certificateFacts(row),
    type: reason === 'certificateHold' ? 'certificate.held' : 'certificate.revoked',
    outcome: 'success',
    revocation_reason: reason,
    ...(since === undefined ? {} : { invalidity_date: since }),
    detail: `${row.subject}: ${reason}${since === undefined ? '' : `, invalid since ${since}`}`,
  };
}

export function certificateReleased(by: By, row: CertificateNames): AuditEvent {
  return { ...by, ...certificateFacts(row), type: 'certificate.released', outcome: 'success', detail: row.subject };
}

/** @param why of the administrator */
export function certificateRescued(by: By, row: CertificateNames, until: number, why?: string): AuditEvent {
  const rescue_until = new Date(until).toISOString();
  return {
    ...by,
    ...certificateFacts(row),
    type: 'certificate.rescued',
    outcome: 'success',
    rescue_until,
    ...(why === undefined ? {} : { reason: why }),
    detail: `${row.subject}: until ${rescue_until}`,
  };
}

/** @param by has the ID of the request that used the pass */
export function certificateRescueEnded(by: By, row: CertificateKey, detail: string): AuditEvent {
  return { ...by, ...auditedCertificate(row), type: 'certificate.rescue_ended', outcome: 'success', detail };
}

export function renewalEnded(by: By, id: string): AuditEvent {
  return { ...by, type: 'renewal.ended', outcome: 'success', detail: id };
}

interface AuditedToken {
  readonly id: string;
  /** Default: the client in `by`. */
  readonly client_id?: string;
  readonly ca?: string | null;
  /** Required if it changes. */
  readonly expires_at?: number;
}

type TokenEvent =
  | { readonly type: 'otp.created' | 'otp.changed'; readonly token: AuditedToken & { readonly expires_at: number } }
  | { readonly type: 'otp.used' | 'otp.returned' | 'otp.revoked'; readonly token: AuditedToken };

/** @param note appended to the token's ID in the text */
export function tokenEvent({ type, token }: TokenEvent, by: By, note = ''): AuditEvent {
  const { id, client_id, ca } = token;
  const isNew = type === 'otp.created' || type === 'otp.changed';
  return {
    ...(client_id === undefined ? {} : { subject: client_id }),
    ...(ca === undefined || ca === null ? {} : { ca }),
    ...by,
    type,
    outcome: 'success',
    token: id,
    ...(isNew ? { token_expires_at: new Date(token.expires_at).toISOString() } : {}),
    detail: `token ${id}${note}`,
  };
}

interface AuditedDevice {
  readonly key: string;
  readonly id: string;
  readonly ca: string | null;
}

/** @param change the new values; the record contains `enabled`, and the names of the others */
export function deviceEvent(
  type: Extract<AuditType, `device.${string}`>,
  { key, id, ca }: AuditedDevice,
  by: By,
  { enabled, ...others }: { readonly enabled?: boolean } = {},
  note = [...(enabled === undefined ? [] : [`enabled ${enabled}`]), ...Object.keys(others)].join(', '),
): AuditEvent {
  return {
    ...by,
    ...(ca === null ? {} : { ca }),
    type,
    outcome: 'success',
    device: id,
    device_key: key,
    ...(enabled === undefined ? {} : { device_enabled: enabled }),
    detail: `device ${id}${note === '' ? '' : `: ${note}`}`,
  };
}

export function requestEnded(
  type: 'request.rejected' | 'request.expired',
  by: By & { readonly request_id: string },
  reason: string,
  detail: string = reason,
): AuditEvent {
  return { ...by, type, outcome: 'success', reason, detail };
}

export function crlIssued(ca: string, number: number, bytes: number): AuditEvent {
  return { type: 'crl.issued', outcome: 'success', ca, crl_number: number, detail: `number ${number}, ${bytes} bytes` };
}
