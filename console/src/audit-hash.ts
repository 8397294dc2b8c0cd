/** The hash of an audit record (contract §7), made of the record alone. */

/** The fields in the order in which they are hashed; those that are absent are left out. */
const FIELDS = [
  'seq',
  'time',
  'node',
  'type',
  'outcome',
  'subject',
  'method',
  'requester_issuer',
  'requester_sans',
  'address',
  'ca',
  'label',
  'serial',
  'certificate_subject',
  'certificate_sans',
  'certificate_not_after',
  'request_id',
  'detail',
  'archived',
  'checkpoint',
  'anchors',
  'prev_hash',
] as const;

const encoder = new TextEncoder();

/** SHA-256 of the record's canonical JSON, hex. */
export async function hashOf(record: Readonly<Partial<Record<(typeof FIELDS)[number], unknown>>>): Promise<string> {
  const canonical = JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, record[name]])));
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(canonical));
  return Array.from(new Uint8Array(digest), (octet) => octet.toString(16).padStart(2, '0')).join('');
}
