/** The event types of the audit log; types, the admin filter and the docs are derived from this list. */
export const AUDIT_TYPES = [
  'service.start',
  'service.stop',
  'config.reload',
  'auth.mtls',
  'auth.otp',
  'auth.gssapi',
  'auth.ldap',
  'auth.jwt',
  'auth.cmc',
  'auth.admin',
  'lockout.started',
  'lockout.cleared',
  'otp.created',
  'otp.changed',
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
  'certificate.held',
  'certificate.released',
  'certificate.rescued',
  'certificate.rescue_ended',
  'certificate.accepted',
  'certificate.imported',
  'renewal.started',
  'renewal.ended',
  'renewal.overdue',
  'holder.expired',
  'holder.failing',
  'holder.stuck',
  'holder.late',
  'certificate.expiring',
  'ca.expiring',
  'crl.overdue',
  'client_crl.expired',
  'ca.unavailable',
  'upstream.unavailable',
  'notification.failed',
  'device.created',
  'device.changed',
  'device.deleted',
  'key.generated',
  'key.archived',
  'ca.signature',
  'crl.issued',
  'admin.access',
  'audit.recovered',
  'audit.rotated',
  'audit.archived',
  'audit.anchored',
  'audit.checkpoint',
  'store.purged',
  'store.restored',
  'store.accepted',
  'store.behind',
] as const;

export type AuditType = (typeof AUDIT_TYPES)[number];

export const REQUESTER_AUTHENTICATION: readonly AuditType[] = AUDIT_TYPES.filter(
  (type) => type.startsWith('auth.') && type !== 'auth.admin',
);
export type AuditOutcome = 'success' | 'failure';

/** The requester, in addition to `subject`. All fields are absent without authentication. */
export interface AuditedRequester {
  /** Authentication method: `mtls`, `otp`, `gssapi`, `ldap`, `jwt`, `cmc`; for an administrator `mtls`, `bearer`, `oidc`. */
  readonly method?: string;
  /** Issuer of its certificate, RFC 4514. */
  readonly requester_issuer?: string;
  /** subjectAltNames of its certificate, in the form `DNS:a`. */
  readonly requester_sans?: readonly string[];
}

/** A range of archived records, which this record replaces. */
export interface ArchivedRange {
  readonly first: number;
  readonly last: number;
  /** Hash of the last one; the first remaining record refers to it. */
  readonly hash: string;
}

/** The end of the chain, signed with `audit.checkpoint_key`. */
export interface Checkpoint {
  readonly seq: number;
  readonly hash: string;
  /** Base64. */
  readonly signature: string;
}

/** The end of another node's chain, recorded in this one so that truncation is detected. */
export interface Anchor {
  readonly node: string;
  readonly seq: number;
  readonly hash: string;
}

/** An event as reported; sequence, time, node and hashes are added on commit. Never contains a secret. */
export interface AuditEvent extends AuditedRequester {
  readonly type: AuditType;
  readonly outcome: AuditOutcome;
  /** A subject DN, an OTP's client_id, a principal, or an administrator's description. */
  readonly subject?: string;
  readonly address?: string;
  readonly ca?: string;
  /** For certificates: the label of the request, if it is not the label of `ca`, whose key signs. */
  readonly label?: string;
  readonly serial?: string;
  /** Subject (RFC 4514) and subjectAltNames of an issued or revoked certificate. */
  readonly certificate_subject?: string;
  readonly certificate_sans?: readonly string[];
  /** Its expiry, ISO 8601 UTC. */
  readonly certificate_not_after?: string;
  /** The names that were authorized for it, if its CA certified others; in the form of the store. */
  readonly authorized_names?: string;
  /** For `certificate.revoked` and `certificate.held`: an RFC 5280 CRLReason name, and the invalidity date, ISO 8601 UTC. */
  readonly revocation_reason?: string;
  readonly invalidity_date?: string;
  /** For `certificate.rescued`: the end of the pass, ISO 8601 UTC. */
  readonly rescue_until?: string;
  readonly request_id?: string;
  /** For `certificate.issued` and rejected requests: the operation. For `admin.access`: the call, such as `POST /admin/otp`. */
  readonly operation?: string;
  /** For `certificate.denied`: whether the requester's certificate requests its own names. */
  readonly renewal?: boolean;
  /** For `certificate.issued`: the certificate's owner, unless it is `subject`. */
  readonly requester?: string;
  /** The registered device: its ID, and the key of its entry. */
  readonly device?: string;
  readonly device_key?: string;
  /** For `certificate.issued`: whether the label issues to registered devices only. */
  readonly device_required?: boolean;
  /** For `device.*`: the new value, if it changes. */
  readonly device_enabled?: boolean;
  /** For `otp.*`: the ID of the token. */
  readonly token?: string;
  /** For `otp.created` and `otp.changed`: the token's expiry, ISO 8601 UTC. */
  readonly token_expires_at?: string;
  /** Why a request or a credential was rejected, or a request expired. */
  readonly reason?: string;
  readonly crl_number?: number;
  /** For `certificate.expiring` and `ca.expiring`: the days before the expiry that were reached. */
  readonly days?: number;
  /** For `holder.*`: the holder, as the list of the fleet shows it; or how many have entered the state. */
  readonly holder?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly count?: number;
  readonly detail?: string;
  /** Of `audit.archived`. */
  readonly archived?: ArchivedRange;
  /** Of `audit.checkpoint`. */
  readonly checkpoint?: Checkpoint;
  readonly anchors?: readonly Anchor[];
}

/**
 * A committed event: one line of the audit file, one row of the store, one item of `GET /admin/audit`. Later versions
 * may add fields, which are hashed too.
 */
export interface AuditRecord extends AuditEvent {
  readonly seq: number;
  /** ISO 8601 UTC with milliseconds. */
  readonly time: string;
  /** The node that wrote it (`[store] node_name`). */
  readonly node?: string;
  /** In a transaction's first record: the store's last record before the transaction. */
  readonly stored?: number;
  /** Hex SHA-256 of the previous record; 64 zeros for the first. */
  readonly prev_hash: string;
  /** Hex SHA-256 of the canonical JSON of all other fields. */
  readonly hash: string;
}
