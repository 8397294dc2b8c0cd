/** The tables of both drivers, in insertion order. */

/** A value of a row in either database. */
export type Value = number | string | Buffer | null;
export type Row = Readonly<Record<string, Value>>;

export interface CopiedTable {
  readonly name: string;
  /** Sort columns, identical in both. */
  readonly order: readonly string[];
  readonly columns: readonly string[];
}

const words = (text: string): string[] => text.trim().split(/\s+/);

/** Other tables are rebuilt or not copied: search indexes, administrator sessions, locks. */
export const TABLES: readonly CopiedTable[] = [
  {
    name: 'otp',
    order: ['position'],
    columns: words('position id lookup hash client_id ca created_at expires_at max_uses uses revoked_at'),
  },
  { name: 'otp_use', order: ['request_id'], columns: words('request_id otp_id recognition taken_at issued_at') },
  { name: 'lookup_key', order: ['key_check'], columns: ['key_check'] },
  { name: 'failure', order: ['key', 'at'], columns: ['key', 'at'] },
  { name: 'lockout', order: ['key'], columns: words('key failures locked_until') },
  {
    name: 'reservation',
    order: ['position'],
    columns: words(
      'position request_id instance ca label serial requester operation subject spki_sha256 otp_id device_key required_device created_at',
    ),
  },
  {
    name: 'certificate',
    order: ['position'],
    columns:
      words(`position ca label serial subject sans not_before not_after issued_at der fingerprint_sha256 requester
      method request_id device device_key required_device key_identifier archived_key_id revocation_challenge revoked_at reason invalidity_date`),
  },
  {
    name: 'request',
    order: ['position'],
    columns:
      words(`position id ca operation subject sans key_type requester method requester_id requester_issuer requester_sans
      names status created_at decided_at decided_by approvals reason serial csr format spki_sha256 otp_id recognition changed_at decider
      reference polled_at missing_since final device device_key required_device override`),
  },
  {
    name: 'cmc_message',
    order: ['position'],
    columns: words('position key id transaction_key instance created_at nonce answer'),
  },
  { name: 'crl', order: ['ca'], columns: words('ca last_number number this_update next_update der') },
  { name: 'crl_change', order: ['ca'], columns: words('ca changes changed_at') },
  {
    name: 'renewal',
    order: ['position'],
    columns: words('position id selection begins due created_by reason explanation_url overdue_at'),
  },
  { name: 'notification', order: ['name', 'node'], columns: words('name node seq') },
  { name: 'presented_intermediate', order: ['fingerprint'], columns: words('fingerprint der used_at') },
  { name: 'presented_path', order: ['leaf'], columns: words('leaf intermediates used_at') },
  {
    name: 'device',
    order: ['position'],
    columns: words('position key id ca enabled not_after note match match_key attributes created_at changed_at'),
  },
  { name: 'audit', order: ['seq'], columns: words('seq time type line') },
  { name: 'audit_head', order: ['seq'], columns: words('seq hash file_start file_size') },
  // After the records, which have been counted already and partly deleted.
  { name: 'statistic', order: ['hour', 'ca', 'what'], columns: words('hour ca what count') },
];

/** Rows per batch. */
export const BATCH = 500;
