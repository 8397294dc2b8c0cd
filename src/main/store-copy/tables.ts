/** The tables of both drivers, in insertion order. */
import { CERTIFICATE_COLUMNS } from '../../store/certificate-store.ts';
import { DEVICE_COLUMNS } from '../../store/device-store.ts';
import { RESERVATION_COLUMNS } from '../../store/issuance-store.ts';
import { OTP_COLUMNS } from '../../store/otp-store.ts';
import { RENEWAL_COLUMNS } from '../../store/renewal-store.ts';
import { REQUEST_COLUMNS } from '../../store/request-store.ts';

/** A value of a row in either database. */
export type Value = number | string | Buffer | null;
export type Row = Readonly<Record<string, Value>>;

export interface CopiedTable {
  readonly name: string;
  /** Sort columns, identical in both. */
  readonly order: readonly string[];
  readonly columns: readonly string[];
}

const words = (text: string): string[] => text.split(/,? /);
const inOrder = (name: string, columns: string): CopiedTable => ({
  name,
  order: ['position'],
  columns: ['position', ...words(columns)],
});
const byKey = (name: string, order: string, columns: string): CopiedTable => ({
  name,
  order: words(order),
  columns: words(columns),
});

/** Other tables are rebuilt or not copied: search indexes, administrator sessions, locks. */
export const TABLES: readonly CopiedTable[] = [
  inOrder('otp', OTP_COLUMNS),
  byKey('otp_use', 'request_id', 'request_id otp_id recognition taken_at issued_at'),
  byKey('lookup_key', 'key_check', 'key_check'),
  byKey('failure', 'key at', 'key at'),
  byKey('lockout', 'key', 'key failures locked_until'),
  byKey('reservation', 'request_id', RESERVATION_COLUMNS),
  inOrder('certificate', `${CERTIFICATE_COLUMNS}, issued_at`),
  inOrder('request', `${REQUEST_COLUMNS}, polled_at, final`),
  inOrder('cmc_message', 'key id transaction_key instance created_at nonce answer'),
  byKey('crl', 'ca', 'ca last_number number this_update next_update der'),
  byKey('crl_change', 'ca', 'ca changes changed_at'),
  inOrder('renewal', RENEWAL_COLUMNS),
  byKey('notification', 'name node', 'name node seq'),
  byKey('presented_intermediate', 'fingerprint', 'fingerprint der used_at'),
  byKey('presented_path', 'leaf', 'leaf intermediates used_at'),
  inOrder('device', `${DEVICE_COLUMNS}, match_key`),
  byKey('audit', 'seq', 'seq time type line'),
  byKey('audit_head', 'seq', 'seq hash file_start file_size'),
  // After the records, which have been counted already and partly deleted.
  byKey('statistic', 'hour ca what', 'hour ca what count'),
];

/** Rows per batch. */
export const BATCH = 500;
