/** What the hash of an audit record is made of. Without Node, as the console checks the chain, too. */

/** The fields of the canonical JSON in its order; those that are absent are left out. */
export const HASHED_FIELDS = [
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
  'revocation_reason',
  'invalidity_date',
  'request_id',
  'detail',
  'archived',
  'checkpoint',
  'anchors',
  'prev_hash',
] as const;

export type HashedField = (typeof HASHED_FIELDS)[number];
