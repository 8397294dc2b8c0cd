import { FIRST_VERSION } from '../calls/errors.ts';

/**
 * The schema of the PostgreSQL store. `position` is the insertion order, by which lists are paged; times are
 * milliseconds since the epoch; JSON is text. Constraints prevent conflicting concurrent changes by two nodes.
 */

const SCHEMA = `
-- The nodes that live, the one that is on duty, and what they share.
CREATE TABLE node (
  name        text PRIMARY KEY,
  incarnation uuid NOT NULL, -- new at each start, and after the node was taken for dead
  host        text NOT NULL,
  instance    text NOT NULL, -- its process: the owner of reservations and CMC messages
  started     timestamptz NOT NULL,
  heartbeat   timestamptz NOT NULL -- by the database's clock
);
CREATE TABLE duty (
  name        text PRIMARY KEY,
  incarnation uuid NOT NULL, -- of the node that has it
  until       timestamptz NOT NULL
);
CREATE TABLE shared_secret (
  name        text PRIMARY KEY,
  period      bigint NOT NULL,
  sealed      bytea NOT NULL -- under store.shared_key
);

CREATE TABLE otp (
  position   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id         text NOT NULL UNIQUE,
  lookup     text NOT NULL UNIQUE,
  hash       text NOT NULL,
  client_id  text NOT NULL,
  ca         text,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  max_uses   bigint NOT NULL CHECK (max_uses > 0),
  uses       bigint NOT NULL CHECK (uses BETWEEN 0 AND max_uses),
  revoked_at bigint
);
CREATE INDEX otp_by_client ON otp (client_id, position);
CREATE INDEX otp_revoked ON otp (position) WHERE revoked_at IS NOT NULL;
CREATE INDEX otp_consumed ON otp (position) WHERE revoked_at IS NULL AND uses >= max_uses;
CREATE INDEX otp_live ON otp (position, expires_at) WHERE revoked_at IS NULL AND uses < max_uses;

-- The request for which each use of a token was taken.
CREATE TABLE otp_use (
  request_id  text PRIMARY KEY,
  otp_id      text NOT NULL REFERENCES otp (id) ON DELETE CASCADE,
  recognition text NOT NULL, -- as in table request
  taken_at    bigint NOT NULL,
  issued_at   bigint -- null: not yet, or never
);
CREATE INDEX otp_use_by_recognition ON otp_use (recognition, taken_at);
CREATE INDEX otp_use_by_otp ON otp_use (otp_id);

-- A check value of the key of the lookups; one row once there is a key.
CREATE TABLE lookup_key (
  only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  key_check text NOT NULL
);

CREATE TABLE failure (
  key text NOT NULL,
  at  bigint NOT NULL
);
CREATE INDEX failure_by_key ON failure (key, at);
CREATE INDEX failure_by_time ON failure (at);

CREATE TABLE lockout (
  key          text PRIMARY KEY,
  failures     bigint NOT NULL,
  locked_until bigint NOT NULL
);
CREATE INDEX lockout_by_end ON lockout (locked_until, key);

-- Open reservations only: recording or releasing one removes it.
CREATE TABLE reservation (
  position    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request_id  text NOT NULL UNIQUE,
  instance    text NOT NULL,
  ca          text NOT NULL,
  label       text,
  serial      text,
  requester   text NOT NULL,
  operation   text NOT NULL,
  subject     text NOT NULL,
  spki_sha256 text,
  otp_id      text REFERENCES otp (id),
  device_key  text,
  required_device text,
  created_at  bigint NOT NULL,
  UNIQUE (ca, serial)
);
CREATE INDEX reservation_by_instance ON reservation (instance);
CREATE INDEX reservation_by_otp ON reservation (otp_id) WHERE otp_id IS NOT NULL;

CREATE TABLE certificate (
  position             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ca                   text NOT NULL,
  label                text,
  serial               text NOT NULL,
  subject              text NOT NULL,
  subject_folded       text NOT NULL, -- lower case, for the search
  sans                 text NOT NULL, -- a JSON array
  sans_folded          text NOT NULL, -- the names in lower case, a line each
  not_before           bigint NOT NULL,
  not_after            bigint NOT NULL,
  issued_at            bigint, -- null: unknown; not_before counts
  der                  bytea NOT NULL,
  fingerprint_sha256   text NOT NULL,
  requester            text NOT NULL,
  method               text NOT NULL,
  request_id           text NOT NULL,
  device               text,
  device_key           text,
  required_device      text, -- device_key, if the label issues to registered devices only
  key_identifier       text,
  archived_key_id      text,
  revocation_challenge text,
  revoked_at           bigint,
  reason               text,
  invalidity_date      bigint,
  UNIQUE (serial, ca)
);
CREATE INDEX certificate_by_end ON certificate (not_after, revoked_at) INCLUDE (ca, label);
CREATE INDEX certificate_by_revocation ON certificate (ca, position) WHERE revoked_at IS NOT NULL;
CREATE INDEX certificate_revoked ON certificate (position) WHERE revoked_at IS NOT NULL;
CREATE INDEX certificate_by_ca ON certificate (ca, position);
CREATE INDEX certificate_by_label ON certificate (label, position) WHERE label IS NOT NULL;
CREATE INDEX certificate_of_other_label ON certificate (ca) WHERE label IS NOT NULL;
CREATE INDEX certificate_by_requester ON certificate (requester, position);
CREATE INDEX certificate_by_device ON certificate (device_key, position) WHERE device_key IS NOT NULL;
CREATE INDEX certificate_by_device_id ON certificate (device, position) WHERE device IS NOT NULL;
CREATE INDEX certificate_by_key_identifier ON certificate (key_identifier, position) WHERE key_identifier IS NOT NULL;
CREATE INDEX certificate_by_request ON certificate (request_id);
CREATE INDEX certificate_by_issue ON certificate ((coalesce(issued_at, not_before)));

CREATE TABLE request (
  position         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id               text NOT NULL UNIQUE,
  ca               text NOT NULL,
  operation        text NOT NULL,
  subject          text NOT NULL,
  sans             text NOT NULL, -- a JSON array
  key_type         text NOT NULL,
  requester        text NOT NULL,
  method           text NOT NULL,
  requester_id     text NOT NULL,
  requester_issuer text,
  requester_sans   text NOT NULL, -- a JSON array
  names            text NOT NULL, -- the decided names, JSON: what is approved is what is issued
  status           text NOT NULL CHECK (status IN ('pending', 'approved', 'issued', 'rejected', 'failed', 'expired')),
  created_at       bigint NOT NULL,
  decided_at       bigint,
  decided_by       text NOT NULL, -- JSON: [{"key", "name"}], in order
  approvals        integer NOT NULL, -- how many administrators must approve, at least
  reason           text,
  serial           text,
  csr              bytea NOT NULL,
  format           text NOT NULL CHECK (format IN ('pkcs10', 'crmf')),
  spki_sha256      text, -- null: the server generates the key
  otp_id           text REFERENCES otp (id),
  recognition      text NOT NULL, -- a hash of requester, CA, operation, public key and names
  changed_at       bigint NOT NULL, -- when it got its status
  decider          text NOT NULL CHECK (decider IN ('admin', 'ca')),
  reference        text, -- the remote CA's; null: the result of the submission is unknown
  polled_at        bigint, -- when the requester last asked
  missing_since    bigint,
  final            smallint NOT NULL DEFAULT 0 CHECK (final IN (0, 1)), -- failed for good: the same request is not queued again
  device           text,
  device_key       text,
  required_device  text,
  override         text -- what an external service decided about names and validity, JSON
);
CREATE INDEX request_by_recognition ON request (recognition, position);
-- A waiting request exists once, even if it is queued concurrently.
CREATE UNIQUE INDEX request_waiting ON request (recognition) WHERE status IN ('pending', 'approved');
CREATE INDEX request_by_status ON request (status, changed_at);
CREATE INDEX request_in_status ON request (status, position);
CREATE INDEX request_by_ca ON request (ca, position);
CREATE INDEX request_by_requester ON request (requester, position);
CREATE INDEX request_by_device ON request (device_key, position) WHERE device_key IS NOT NULL;
CREATE INDEX request_by_device_id ON request (device, position) WHERE device IS NOT NULL;
CREATE INDEX request_by_otp ON request (otp_id) WHERE otp_id IS NOT NULL;

CREATE TABLE cmc_message (
  position        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key             text NOT NULL UNIQUE, -- a hash of CA, sender, transactionId, senderNonce and content
  id              text NOT NULL, -- the ids of its requests are derived from it
  transaction_key text NOT NULL, -- a hash of CA, sender and transactionId
  instance        text, -- the process that is at work on it
  created_at      bigint NOT NULL,
  nonce           bytea, -- the senderNonce of the latest response
  status          bigint, -- of a final response
  answer          bytea, -- DER
  CHECK ((status IS NULL) = (answer IS NULL))
);
CREATE INDEX cmc_message_by_transaction ON cmc_message (transaction_key);
CREATE INDEX cmc_message_by_time ON cmc_message (created_at);
CREATE INDEX cmc_message_by_instance ON cmc_message (instance) WHERE instance IS NOT NULL;

-- The latest CRL of each CA, and the last number that was given out, even if that list was never completed.
CREATE TABLE crl (
  ca          text PRIMARY KEY,
  last_number bigint NOT NULL,
  number      bigint,
  this_update bigint,
  next_update bigint,
  der         bytea
);
-- Changes that a CRL must contain: how many there were, and when the first came that is in no list yet.
CREATE TABLE crl_change (
  ca         text PRIMARY KEY,
  changes    bigint NOT NULL,
  changed_at bigint -- null: the latest CRL has all
);

-- The last audit record of each node's chain that each receiver of notifications has.
CREATE TABLE notification (
  name text NOT NULL,
  node text NOT NULL,
  seq  bigint NOT NULL,
  PRIMARY KEY (name, node)
);

-- Replacement campaigns.
CREATE TABLE renewal (
  position        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id              text NOT NULL UNIQUE,
  selection       text NOT NULL, -- JSON: the filters of the certificate list
  begins          bigint NOT NULL,
  due             bigint NOT NULL,
  created_by      text NOT NULL,
  reason          text,
  explanation_url text,
  overdue_at      bigint -- when overdue certificates were reported
);

-- The CA certificates that clients sent with theirs. They are not trusted.
CREATE TABLE presented_path (
  leaf          text PRIMARY KEY, -- hex SHA-256 of the client's certificate
  intermediates text NOT NULL, -- the fingerprints, in order, separated by spaces
  used_at       bigint NOT NULL
);
CREATE INDEX presented_path_by_use ON presented_path (used_at);
CREATE TABLE presented_intermediate (
  fingerprint text PRIMARY KEY,
  der         bytea NOT NULL,
  used_at     bigint NOT NULL
);
CREATE INDEX presented_intermediate_by_use ON presented_intermediate (used_at);

CREATE TABLE device (
  position   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key        text NOT NULL UNIQUE, -- of this entry: a later device with the same id has another key
  id         text NOT NULL UNIQUE,
  ca         text,
  enabled    smallint NOT NULL CHECK (enabled IN (0, 1)),
  not_after  bigint,
  note       text,
  match      text, -- a JSON object
  match_key  text, -- a hash of everything that the match requires, or the fingerprint
  attributes text NOT NULL, -- a JSON object
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL
);
CREATE INDEX device_by_match ON device (match_key) WHERE match_key IS NOT NULL;
CREATE INDEX device_by_ca ON device (ca, position) WHERE ca IS NOT NULL;
CREATE INDEX device_disabled ON device (position) WHERE enabled = 0;
CREATE INDEX device_by_end ON device (not_after) WHERE not_after IS NOT NULL;

CREATE TABLE session (
  position      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id_hash       text NOT NULL UNIQUE,
  administrator text NOT NULL,
  method        text NOT NULL,
  claims        text, -- of the OpenID provider, JSON
  certificate   text,
  created_at    bigint NOT NULL,
  seen_at       bigint NOT NULL,
  ends_at       bigint NOT NULL
);
CREATE INDEX session_by_administrator ON session (administrator, created_at, position);
CREATE INDEX session_by_end ON session (ends_at);

-- Each node has its own chain of records.
CREATE TABLE audit (
  position   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node       text NOT NULL,
  seq        bigint NOT NULL,
  time       bigint NOT NULL,
  type       text NOT NULL,
  line       text NOT NULL, -- the record, as the node's audit file has it
  subject    text, -- of the record, in lower case, as are the next four: the lists search them
  ca         text,
  label      text,
  serial     text,
  request_id text,
  device_key text,
  UNIQUE (node, seq)
);
CREATE INDEX audit_by_type ON audit (type, position);
CREATE INDEX audit_by_time ON audit (time, position);
CREATE INDEX audit_by_ca ON audit (ca, position) WHERE ca IS NOT NULL;
CREATE INDEX audit_by_serial ON audit (serial, position) WHERE serial IS NOT NULL;
CREATE INDEX audit_by_request ON audit (request_id, position) WHERE request_id IS NOT NULL;
CREATE INDEX audit_by_device ON audit (device_key, position) WHERE device_key IS NOT NULL;

-- The end of each chain, and which part of it is in the current audit file of its node.
CREATE TABLE audit_head (
  node       text PRIMARY KEY,
  seq        bigint NOT NULL,
  hash       text NOT NULL,
  told       bigint NOT NULL, -- the last record that is about more than other chains
  file_start bigint NOT NULL, -- the file's first record
  file_size  bigint NOT NULL  -- bytes
);

-- Counts of audit records by the hour; each node has its own rows.
CREATE TABLE statistic (
  node  text NOT NULL,
  hour  bigint NOT NULL, -- of the epoch
  ca    text NOT NULL, -- '': no CA
  what  text NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (hour, ca, what, node)
);

-- One row, written to find out whether the database can be written.
CREATE TABLE probe (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), at bigint NOT NULL);
INSERT INTO probe (at) VALUES (0);

-- Parts of names are found by trigrams if the database has pg_trgm; otherwise by a scan of all names.
DO $$
BEGIN
  CREATE EXTENSION IF NOT EXISTS pg_trgm;
  CREATE INDEX certificate_by_subject_part ON certificate USING gin (subject_folded gin_trgm_ops);
  CREATE INDEX certificate_by_san_part ON certificate USING gin (sans_folded gin_trgm_ops);
  CREATE INDEX audit_by_subject_part ON audit USING gin (subject gin_trgm_ops) WHERE subject IS NOT NULL;
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
  RAISE NOTICE 'pg_trgm is not available: %', SQLERRM;
END $$;
`;

export interface Migration {
  readonly sql: string;
  /**
   * The oldest schema version whose programs continue to work after it. A migration that only adds keeps earlier
   * versions working.
   */
  readonly serves: number;
}

/**
 * In order: the first creates the schema, each other upgrades a database by one version. Do not change a released migration.
 *
 * Nodes of the previous version continue to work on the database. So a migration that expands the schema only adds, keeps what it doubles
 * in step by triggers, and locks no table for longer than a second (docs/guides/postgresql.md). A migration that removes something `serves` only
 * versions that no longer use it.
 */
export const MIGRATIONS: readonly Migration[] = [{ sql: SCHEMA, serves: FIRST_VERSION }];
