/** The kinds of event the audit log knows (contract §7). One list: types, the admin filter and the docs come from it. */
export const AUDIT_TYPES = [
  'service.start',
  'service.stop',
  'config.reload',
  'auth.mtls',
  'auth.otp',
  'auth.gssapi',
  'auth.cmc',
  'auth.admin',
  'lockout.started',
  'lockout.cleared',
  'otp.created',
  'otp.used',
  'otp.returned',
  'otp.revoked',
  'request.received',
  'request.queued',
  'request.approved',
  'request.rejected',
  'request.expired',
  'certificate.issued',
  'certificate.denied',
  'certificate.failed',
  'certificate.revoked',
  'certificate.accepted',
  'key.generated',
  'key.archived',
  'ca.signature',
  'crl.issued',
  'admin.access',
  'audit.recovered',
  'audit.rotated',
] as const;

export type AuditType = (typeof AUDIT_TYPES)[number];
export type AuditOutcome = 'success' | 'failure';

/** What happened, as its cause knows it. Sequence, time and hashes are added when it is committed. Never holds a secret. */
export interface AuditEvent {
  readonly type: AuditType;
  readonly outcome: AuditOutcome;
  /** Who: a subject DN, an OTP's client_id, a principal, an admin's description. */
  readonly subject?: string;
  /** The client's network address. */
  readonly address?: string;
  /** The CA's label. */
  readonly ca?: string;
  /** Lower-case hex. */
  readonly serial?: string;
  readonly request_id?: string;
  readonly detail?: string;
}

/** A committed event: one line of the audit file, one row of the store, one item of `GET /admin/audit`. */
export interface AuditRecord extends AuditEvent {
  readonly seq: number;
  /** ISO 8601 UTC with milliseconds. */
  readonly time: string;
  /** Hex SHA-256 of the record before; 64 zeros for the first. */
  readonly prev_hash: string;
  /** Hex SHA-256 over the canonical JSON of all other fields. */
  readonly hash: string;
}
