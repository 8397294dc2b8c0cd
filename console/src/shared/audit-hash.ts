/** Computes the hash of an audit record. */
import { HASHED_FIELDS, type HashedField } from '../../../src/audit/hashed-fields.ts';

/** SHA-256 of the record's canonical JSON, hex. */
export async function hashOf(record: Readonly<Partial<Record<HashedField, unknown>>>): Promise<string> {
  const canonical = JSON.stringify(Object.fromEntries(HASHED_FIELDS.map((name) => [name, record[name]])));
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(canonical));
  return Array.from(new Uint8Array(digest), (octet) => octet.toString(16).padStart(2, '0')).join('');
}
