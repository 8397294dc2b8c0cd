/** Computes the hash of an audit record. */
import { HASHED_FIELDS, type HashedField } from '../../../src/audit/hashed-fields.ts';

const encoder = new TextEncoder();

/** SHA-256, hex. */
export async function sha256(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', Uint8Array.from(bytes));
  return Array.from(new Uint8Array(digest), (octet) => octet.toString(16).padStart(2, '0')).join('');
}

/** SHA-256 of the record's canonical JSON, hex. */
export function hashOf(record: Readonly<Partial<Record<HashedField, unknown>>>): Promise<string> {
  const canonical = JSON.stringify(Object.fromEntries(HASHED_FIELDS.map((name) => [name, record[name]])));
  return sha256(encoder.encode(canonical));
}
