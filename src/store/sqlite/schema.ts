/**
 * The schema of the SQLite store. Times are milliseconds since the epoch; `position` is the insertion order, by which
 * lists are paged.
 */

const SCHEMA = `
CREATE TABLE otp (
  position   INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  lookup     TEXT NOT NULL UNIQUE, -- a keyed hash of the token
  hash       TEXT NOT NULL,
  client_id  TEXT NOT NULL,
  ca         TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  max_uses   INTEGER NOT NULL CHECK (max_uses > 0),
  uses       INTEGER NOT NULL CHECK (uses BETWEEN 0 AND max_uses),
  revoked_at INTEGER
) STRICT;
CREATE INDEX otp_by_client ON otp (client_id);
CREATE INDEX otp_revoked ON otp (position) WHERE revoked_at IS NOT NULL;
CREATE INDEX otp_consumed ON otp (position) WHERE revoked_at IS NULL AND uses >= max_uses;
CREATE INDEX otp_live ON otp (position, expires_at) WHERE revoked_at IS NULL AND uses < max_uses;

-- The request for which each use of a token was taken, so that the same request is recognized when it is repeated.
CREATE TABLE otp_use (
  request_id  TEXT PRIMARY KEY,
  otp_id      TEXT NOT NULL REFERENCES otp (id) ON DELETE CASCADE,
  recognition TEXT NOT NULL, -- as in table request
  taken_at    INTEGER NOT NULL,
  issued_at   INTEGER -- null: not yet, or never
) STRICT, WITHOUT ROWID;
CREATE INDEX otp_use_by_recognition ON otp_use (recognition, taken_at);
CREATE INDEX otp_use_by_otp ON otp_use (otp_id);

-- A check value of the key of the lookups; one row once there is a key.
CREATE TABLE lookup_key (
  only      INTEGER PRIMARY KEY CHECK (only = 1),
  key_check TEXT NOT NULL
) STRICT;

CREATE TABLE failure (
  key TEXT NOT NULL,
  at  INTEGER NOT NULL
) STRICT;
CREATE INDEX failure_by_key ON failure (key, at);
CREATE INDEX failure_by_time ON failure (at);

CREATE TABLE lockout (
  key          TEXT PRIMARY KEY,
  failures     INTEGER NOT NULL,
  locked_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX lockout_by_end ON lockout (locked_until);

-- Open reservations only: recording or releasing one removes it.
CREATE TABLE reservation (
  position    INTEGER PRIMARY KEY,
  request_id  TEXT NOT NULL UNIQUE,
  instance    TEXT NOT NULL, -- the process
  ca          TEXT NOT NULL,
  label       TEXT, -- where the certificate is requested; null: the CA's own label
  serial      TEXT,
  requester   TEXT NOT NULL,
  operation   TEXT NOT NULL,
  subject     TEXT NOT NULL,
  spki_sha256 TEXT,
  otp_id      TEXT REFERENCES otp (id),
  device_key  TEXT,
  required_device TEXT,
  created_at  INTEGER NOT NULL,
  UNIQUE (ca, serial)
) STRICT;

CREATE TABLE certificate (
  position             INTEGER PRIMARY KEY,
  ca                   TEXT NOT NULL,
  label                TEXT, -- as in table reservation
  serial               TEXT NOT NULL,
  subject              TEXT NOT NULL,
  subject_folded       TEXT NOT NULL, -- lower case, for the search
  sans                 TEXT NOT NULL, -- a JSON array
  not_before           INTEGER NOT NULL,
  not_after            INTEGER NOT NULL,
  issued_at            INTEGER, -- null: unknown; not_before counts
  fingerprint_sha256   TEXT NOT NULL,
  requester            TEXT NOT NULL,
  method               TEXT NOT NULL,
  request_id           TEXT NOT NULL,
  device               TEXT, -- the id of its requester's device
  device_key           TEXT,
  required_device      TEXT, -- device_key, if the label issues to registered devices only
  key_identifier       TEXT,
  archived_key_id      TEXT, -- the key archive's identifier of the private key
  revocation_challenge TEXT, -- RFC 7894 section 3.2, hashed
  revoked_at           INTEGER,
  reason               TEXT,
  invalidity_date      INTEGER,
  der                  BLOB NOT NULL,
  UNIQUE (serial, ca)
) STRICT;
CREATE INDEX certificate_by_end ON certificate (not_after, revoked_at, ca, label);
CREATE INDEX certificate_by_ca ON certificate (ca);
CREATE INDEX certificate_by_label ON certificate (label) WHERE label IS NOT NULL;
CREATE INDEX certificate_of_other_label ON certificate (ca) WHERE label IS NOT NULL;
CREATE INDEX certificate_by_requester ON certificate (requester);
CREATE INDEX certificate_by_request ON certificate (request_id);
CREATE INDEX certificate_by_key_identifier ON certificate (key_identifier) WHERE key_identifier IS NOT NULL;
CREATE INDEX certificate_by_device ON certificate (device_key) WHERE device_key IS NOT NULL;
CREATE INDEX certificate_by_device_id ON certificate (device) WHERE device IS NOT NULL;
CREATE INDEX certificate_revoked ON certificate (position) WHERE revoked_at IS NOT NULL;
-- Everything that a CRL contains of a revoked certificate, so that the rows, each on another page, are not read for it.
CREATE INDEX crl_entry ON certificate (ca, position, revoked_at, not_after, serial, reason, invalidity_date) WHERE revoked_at IS NOT NULL;

-- The queue of requests that wait for a decision, or have had one.
CREATE TABLE request (
  position         INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  ca               TEXT NOT NULL,
  operation        TEXT NOT NULL,
  subject          TEXT NOT NULL,
  sans             TEXT NOT NULL, -- a JSON array
  key_type         TEXT NOT NULL,
  requester        TEXT NOT NULL,
  method           TEXT NOT NULL,
  requester_id     TEXT NOT NULL,
  requester_issuer TEXT,
  requester_sans   TEXT NOT NULL, -- a JSON array
  names            TEXT NOT NULL, -- the decided names, JSON: what is approved is what is issued
  status           TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'issued', 'rejected', 'failed', 'expired')),
  created_at       INTEGER NOT NULL,
  decided_at       INTEGER,
  decided_by       TEXT NOT NULL, -- JSON: [{"key", "name"}], in order
  approvals        INTEGER NOT NULL, -- how many administrators must approve, at least
  reason           TEXT,
  serial           TEXT,
  csr              BLOB NOT NULL,
  format           TEXT NOT NULL CHECK (format IN ('pkcs10', 'crmf')),
  spki_sha256      TEXT, -- null: the server generates the key
  otp_id           TEXT REFERENCES otp (id),
  recognition      TEXT NOT NULL, -- a hash of requester, CA, operation, public key and names
  changed_at       INTEGER NOT NULL, -- when it got its status
  decider          TEXT NOT NULL CHECK (decider IN ('admin', 'ca')),
  reference        TEXT, -- the remote CA's; null: the result of the submission is unknown
  polled_at        INTEGER, -- when the requester last asked
  missing_since    INTEGER, -- since when the remote CA works and does not know it
  final            INTEGER NOT NULL DEFAULT 0, -- failed for good: the same request is not queued again
  device           TEXT,
  device_key       TEXT,
  required_device  TEXT,
  override         TEXT -- what an external service decided about names and validity, JSON
) STRICT;
CREATE INDEX request_by_recognition ON request (recognition, position);
-- A waiting request exists once, even if it is queued concurrently.
CREATE UNIQUE INDEX request_waiting ON request (recognition) WHERE status IN ('pending', 'approved');
CREATE INDEX request_by_status ON request (status, changed_at);
CREATE INDEX request_in_status ON request (status);
CREATE INDEX request_by_ca ON request (ca);
CREATE INDEX request_by_requester ON request (requester);
CREATE INDEX request_by_device ON request (device_key) WHERE device_key IS NOT NULL;
CREATE INDEX request_by_device_id ON request (device) WHERE device IS NOT NULL;
CREATE INDEX request_by_otp ON request (otp_id) WHERE otp_id IS NOT NULL;

CREATE TABLE cmc_message (
  position        INTEGER PRIMARY KEY,
  key             TEXT NOT NULL UNIQUE, -- a hash of CA, sender, transactionId, senderNonce and content
  id              TEXT NOT NULL, -- the ids of its requests are derived from it
  transaction_key TEXT NOT NULL, -- a hash of CA, sender and transactionId
  instance        TEXT, -- the process that is at work on it
  created_at      INTEGER NOT NULL,
  nonce           BLOB, -- the senderNonce of the latest response
  status          INTEGER, -- of a final response
  answer          BLOB, -- DER
  CHECK ((status IS NULL) = (answer IS NULL))
) STRICT;
CREATE INDEX cmc_message_by_transaction ON cmc_message (transaction_key);
CREATE INDEX cmc_message_by_time ON cmc_message (created_at);
CREATE INDEX cmc_message_by_instance ON cmc_message (instance) WHERE instance IS NOT NULL;

-- The latest CRL of each CA, and the last number that was given out, even if that list was never completed.
CREATE TABLE crl (
  ca          TEXT PRIMARY KEY,
  last_number INTEGER NOT NULL,
  number      INTEGER,
  this_update INTEGER,
  next_update INTEGER,
  der         BLOB
) STRICT;

-- Changes that a CRL must contain: how many there were, and when the first came that is in no list yet. It is not in table crl, where
-- each change would write the list again.
CREATE TABLE crl_change (
  ca         TEXT PRIMARY KEY,
  changes    INTEGER NOT NULL,
  changed_at INTEGER -- null: the latest CRL has all
) STRICT, WITHOUT ROWID;

-- The last audit record that each receiver of notifications has; node: '' is the chain of this database.
CREATE TABLE notification (
  name TEXT NOT NULL,
  node TEXT NOT NULL,
  seq  INTEGER NOT NULL,
  PRIMARY KEY (name, node)
) STRICT, WITHOUT ROWID;

-- Replacement campaigns.
CREATE TABLE renewal (
  position        INTEGER PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  selection       TEXT NOT NULL, -- JSON: the filters of the certificate list
  begins          INTEGER NOT NULL,
  due             INTEGER NOT NULL,
  created_by      TEXT NOT NULL,
  reason          TEXT,
  explanation_url TEXT,
  overdue_at      INTEGER -- when overdue certificates were reported
) STRICT;

-- The CA certificates that clients sent with theirs, for TLS sessions that are resumed without them. They are not trusted.
CREATE TABLE presented_path (
  leaf          TEXT PRIMARY KEY, -- hex SHA-256 of the client's certificate
  intermediates TEXT NOT NULL, -- the fingerprints, in order, separated by spaces
  used_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX presented_path_by_use ON presented_path (used_at);
CREATE TABLE presented_intermediate (
  fingerprint TEXT PRIMARY KEY,
  der         BLOB NOT NULL,
  used_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX presented_intermediate_by_use ON presented_intermediate (used_at);

CREATE TABLE device (
  position   INTEGER PRIMARY KEY,
  key        TEXT NOT NULL UNIQUE, -- of this entry: a later device with the same id has another key
  id         TEXT NOT NULL UNIQUE,
  ca         TEXT,
  enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  not_after  INTEGER,
  note       TEXT,
  match      TEXT, -- a JSON object
  match_key  TEXT, -- a hash of everything that the match requires, or the fingerprint
  attributes TEXT NOT NULL, -- a JSON object
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX device_by_match ON device (match_key) WHERE match_key IS NOT NULL;
CREATE INDEX device_by_ca ON device (ca, position) WHERE ca IS NOT NULL;
CREATE INDEX device_disabled ON device (position) WHERE enabled = 0;
CREATE INDEX device_by_end ON device (not_after) WHERE not_after IS NOT NULL;

-- Administrators who have signed in.
CREATE TABLE session (
  position      INTEGER PRIMARY KEY,
  id_hash       TEXT NOT NULL UNIQUE,
  administrator TEXT NOT NULL,
  method        TEXT NOT NULL,
  claims        TEXT, -- of the OpenID provider, JSON
  certificate   TEXT,
  created_at    INTEGER NOT NULL,
  seen_at       INTEGER NOT NULL,
  ends_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX session_by_administrator ON session (administrator, created_at, position);
CREATE INDEX session_by_end ON session (ends_at);

-- The searchable columns are computed from the record, so that they cannot differ from it. They are indexed later, many rows at once
-- (search/index-rows.ts), because a record changes a page of each index.
CREATE TABLE audit (
  seq        INTEGER PRIMARY KEY,
  time       INTEGER NOT NULL,
  type       TEXT NOT NULL,
  line       TEXT NOT NULL, -- the record, as the audit file has it
  subject    TEXT GENERATED ALWAYS AS (line ->> '$.subject') VIRTUAL,
  ca         TEXT GENERATED ALWAYS AS (line ->> '$.ca') VIRTUAL,
  label      TEXT GENERATED ALWAYS AS (line ->> '$.label') VIRTUAL,
  serial     TEXT GENERATED ALWAYS AS (line ->> '$.serial') VIRTUAL,
  request_id TEXT GENERATED ALWAYS AS (line ->> '$.request_id') VIRTUAL,
  device_key TEXT GENERATED ALWAYS AS (line ->> '$.device_key') VIRTUAL,
  indexed    INTEGER NOT NULL DEFAULT 1 -- 0 or 1
) STRICT;
CREATE INDEX audit_by_type ON audit (type) WHERE indexed = 1;
CREATE INDEX audit_by_subject ON audit (subject) WHERE indexed = 1 AND subject IS NOT NULL;
CREATE INDEX audit_by_ca ON audit (ca) WHERE indexed = 1 AND ca IS NOT NULL;
CREATE INDEX audit_by_serial ON audit (serial) WHERE indexed = 1 AND serial IS NOT NULL;
CREATE INDEX audit_by_request ON audit (request_id) WHERE indexed = 1 AND request_id IS NOT NULL;
CREATE INDEX audit_by_device ON audit (device_key) WHERE indexed = 1 AND device_key IS NOT NULL;

-- One row: the end of the chain, and which part of it is in the current audit file.
CREATE TABLE audit_head (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  seq        INTEGER NOT NULL,
  hash       TEXT NOT NULL,
  file_start INTEGER NOT NULL, -- the file's first record
  file_size  INTEGER NOT NULL  -- bytes
) STRICT;
INSERT INTO audit_head VALUES (1, 0, '${'0'.repeat(64)}', 1, 0);

-- Counts of audit records by the hour (audit-log.ts).
CREATE TABLE statistic (
  hour  INTEGER NOT NULL, -- of the epoch
  ca    TEXT NOT NULL,    -- '': no CA
  what  TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (hour, ca, what)
) STRICT, WITHOUT ROWID;

-- What parts of names are found by. These tables are filled later (search/index-rows.ts), so that recording a certificate does not wait;
-- search_progress has the last row that is in them.
CREATE VIRTUAL TABLE certificate_names USING fts5 (
  subject, sans, content = '', contentless_delete = 1, detail = column, tokenize = 'trigram case_sensitive 1'
);
-- The subjects of audit records, each once.
CREATE TABLE audit_subject (
  id      INTEGER PRIMARY KEY,
  subject TEXT NOT NULL UNIQUE
) STRICT;
CREATE VIRTUAL TABLE audit_subject_names USING fts5 (
  subject, content = '', contentless_delete = 1, detail = column, tokenize = 'trigram case_sensitive 1'
);
CREATE TABLE search_progress (
  list TEXT PRIMARY KEY,
  upto INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO search_progress VALUES ('certificate', 0), ('audit', 0);
-- The lowest and the highest time in a block of rows, so that a search by time skips blocks.
CREATE TABLE search_zone (
  kind  TEXT NOT NULL CHECK (kind IN ('certificate.end', 'certificate.issue', 'audit.time')),
  first INTEGER NOT NULL,
  last  INTEGER NOT NULL,
  low   INTEGER NOT NULL,
  high  INTEGER NOT NULL,
  PRIMARY KEY (kind, first)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER certificate_forgotten AFTER DELETE ON certificate BEGIN
  DELETE FROM certificate_names WHERE rowid = OLD.position;
END;
-- SQLite gives out the position of the newest row again when that is deleted.
CREATE TRIGGER newest_certificate_forgotten AFTER DELETE ON certificate
WHEN NOT EXISTS (SELECT 1 FROM certificate WHERE position > OLD.position) BEGIN
  UPDATE search_progress SET upto = min(upto, OLD.position - 1) WHERE list = 'certificate';
  DELETE FROM search_zone WHERE kind LIKE 'certificate.%' AND last >= OLD.position;
END;

-- One row, written to find out whether the database can be written.
CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at INTEGER NOT NULL) STRICT;
INSERT INTO probe VALUES (1, 0);
`;

/**
 * SQL scripts in order: the first creates the schema, each other upgrades a database by one version. Do not change a
 * released script.
 */
export const MIGRATIONS: readonly string[] = [SCHEMA];
