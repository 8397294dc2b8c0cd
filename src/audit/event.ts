/** The kinds of event the audit log knows. One list: types, the admin filter and the docs come from it. */
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
  'certificate.accepted',
  'certificate.imported',
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

/** The types of records about the authentication of requesters. */
export const REQUESTER_AUTHENTICATION: readonly AuditType[] = AUDIT_TYPES.filter(
  (type) => type.startsWith('auth.') && type !== 'auth.admin',
);
export type AuditOutcome = 'success' | 'failure';

/** Who asked, beside the name in `subject`. Where nobody was authenticated, all of it is absent. */
export interface AuditedRequester {
  /** How the requester authenticated: `mtls`, `otp`, `gssapi`, `ldap`, `jwt`, `cmc`; an administrator: `mtls`, `bearer`. */
  readonly method?: string;
  /** The issuer of its certificate, RFC 4514. */
  readonly requester_issuer?: string;
  /** The subjectAltNames of its certificate, written as in certificate records: `DNS:a`. */
  readonly requester_sans?: readonly string[];
}

/** A run of records that has left the store for an archive: from then on this record stands for them. */
export interface ArchivedRange {
  /** The first and the last `seq`. */
  readonly first: number;
  readonly last: number;
  /** The hash of the last one, which the first record that is still there follows. */
  readonly hash: string;
}

/** The end of the chain at some time, signed by the key of `audit.checkpoint_key`. */
export interface Checkpoint {
  /** Of the record that was the last. */
  readonly seq: number;
  readonly hash: string;
  /** Base64. */
  readonly signature: string;
}

/** The end of another node's chain at some time, kept in this one: what is cut off there since is missed. */
export interface Anchor {
  readonly node: string;
  /** Of the record that was the last. */
  readonly seq: number;
  readonly hash: string;
}

/** What happened, as its cause knows it. Sequence, time, node and hashes are added when it is committed. Never holds a secret. */
export interface AuditEvent extends AuditedRequester {
  readonly type: AuditType;
  readonly outcome: AuditOutcome;
  /** Who: a subject DN, an OTP's client_id, a principal, an admin's description. */
  readonly subject?: string;
  /** The client's network address. */
  readonly address?: string;
  /** The CA's label. */
  readonly ca?: string;
  /** Of a certificate: the label that it was asked for at, where that is another than `ca`, whose key signs. */
  readonly label?: string;
  readonly serial?: string;
  /** Of the certificate that was issued or revoked: its subject, RFC 4514, and its subjectAltNames. */
  readonly certificate_subject?: string;
  readonly certificate_sans?: readonly string[];
  /** Its end, ISO 8601 UTC. */
  readonly certificate_not_after?: string;
  /** Of `certificate.revoked`: an RFC 5280 CRLReason name, and the invalidity date, ISO 8601 UTC. */
  readonly revocation_reason?: string;
  readonly invalidity_date?: string;
  readonly request_id?: string;
  /** Of `certificate.issued`: the operation of the request. Of `admin.access`: the call, such as `POST /admin/otp`. */
  readonly operation?: string;
  /** Of `certificate.issued`: the owner of the certificate, if it is not `subject`. */
  readonly requester?: string;
  /** The registered device: its ID, and the key of its entry. */
  readonly device?: string;
  readonly device_key?: string;
  /** Of `certificate.issued`: whether the label issues to registered devices only. */
  readonly device_required?: boolean;
  /** Of `device.*`: the new value, if the change contains it. */
  readonly device_enabled?: boolean;
  /** Of `otp.*`: the ID of the token. */
  readonly token?: string;
  /** Of `otp.created` and `otp.changed`: the expiry date of the token, ISO 8601 UTC. */
  readonly token_expires_at?: string;
  /** Of `request.rejected` and `request.expired`: why. */
  readonly reason?: string;
  /** Of `crl.issued`. */
  readonly crl_number?: number;
  readonly detail?: string;
  /** Of `audit.archived`. */
  readonly archived?: ArchivedRange;
  /** Of `audit.checkpoint`. */
  readonly checkpoint?: Checkpoint;
  readonly anchors?: readonly Anchor[];
}

/**
 * A committed event: one line of the audit file, one row of the store, one item of `GET /admin/audit`. A record of a later version may have
 * fields that are not listed here; they are hashed like all others.
 */
export interface AuditRecord extends AuditEvent {
  readonly seq: number;
  /** ISO 8601 UTC with milliseconds. */
  readonly time: string;
  /** The node that wrote it (`[store] node_name`). */
  readonly node?: string;
  /** Of the first record of a transaction: the last record that the store had when the transaction began. */
  readonly stored?: number;
  /** Hex SHA-256 of the record before; 64 zeros for the first. */
  readonly prev_hash: string;
  /** Hex SHA-256 over the canonical JSON of all other fields. */
  readonly hash: string;
}
