/**
 * OTPs, lockouts, reservations, certificates and the audit log. `position` is the order of insertion, which lists page
 * by; times are milliseconds since the epoch.
 */
export const initial = `
CREATE TABLE otp (
  position   INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  selector   TEXT NOT NULL UNIQUE,
  hash       TEXT NOT NULL,
  client_id  TEXT NOT NULL,
  ca         TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  max_uses   INTEGER NOT NULL CHECK (max_uses > 0),
  uses       INTEGER NOT NULL CHECK (uses BETWEEN 0 AND max_uses),
  revoked_at INTEGER
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
  instance    TEXT NOT NULL,
  ca          TEXT NOT NULL,
  serial      TEXT,
  requester   TEXT NOT NULL,
  operation   TEXT NOT NULL,
  subject     TEXT NOT NULL,
  spki_sha256 TEXT,
  otp_id      TEXT REFERENCES otp (id),
  created_at  INTEGER NOT NULL,
  UNIQUE (ca, serial)
) STRICT;

CREATE TABLE certificate (
  position           INTEGER PRIMARY KEY,
  ca                 TEXT NOT NULL,
  serial             TEXT NOT NULL,
  subject            TEXT NOT NULL,
  subject_folded     TEXT NOT NULL, -- lower case, for the search
  sans               TEXT NOT NULL, -- a JSON array
  not_before         INTEGER NOT NULL,
  not_after          INTEGER NOT NULL,
  der                BLOB NOT NULL,
  fingerprint_sha256 TEXT NOT NULL UNIQUE,
  requester          TEXT NOT NULL,
  method             TEXT NOT NULL,
  request_id         TEXT NOT NULL,
  revoked_at         INTEGER,
  reason             TEXT,
  invalidity_date    INTEGER,
  UNIQUE (serial, ca)
) STRICT;
CREATE INDEX certificate_by_end ON certificate (not_after);
CREATE INDEX certificate_by_revocation ON certificate (ca, revoked_at) WHERE revoked_at IS NOT NULL;

CREATE TABLE audit (
  seq  INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,
  type TEXT NOT NULL,
  line TEXT NOT NULL -- the record, as the audit file has it
) STRICT;
CREATE INDEX audit_by_type ON audit (type, seq);
CREATE INDEX audit_by_time ON audit (time);

-- One row: the end of the chain, and what of it stands in the present audit file.
CREATE TABLE audit_head (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  seq        INTEGER NOT NULL,
  hash       TEXT NOT NULL,
  file_start INTEGER NOT NULL, -- the file's first record
  file_size  INTEGER NOT NULL  -- bytes
) STRICT;
INSERT INTO audit_head VALUES (1, 0, '${'0'.repeat(64)}', 1, 0);

-- One row, written to find out whether the database can be written.
CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at INTEGER NOT NULL) STRICT;
INSERT INTO probe VALUES (1, 0);
`;
