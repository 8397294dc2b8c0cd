/** The queue of requests that wait for, or have had, an administrator's decision. */
export const requests = `
CREATE TABLE request (
  position    INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  ca          TEXT NOT NULL,
  operation   TEXT NOT NULL,
  subject     TEXT NOT NULL,
  sans        TEXT NOT NULL, -- a JSON array
  key_type    TEXT NOT NULL,
  requester   TEXT NOT NULL,
  method      TEXT NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'issued', 'rejected', 'failed', 'expired')),
  created_at  INTEGER NOT NULL,
  decided_at  INTEGER,
  reason      TEXT,
  serial      TEXT,
  csr         BLOB NOT NULL,
  spki_sha256 TEXT NOT NULL,
  otp_id      TEXT REFERENCES otp (id),
  recognition TEXT NOT NULL, -- a hash of requester, CA, operation, public key and names
  changed_at  INTEGER NOT NULL -- when it got its status
) STRICT;
CREATE INDEX request_by_recognition ON request (recognition, position);
-- What waits is there once, however many processes queue it.
CREATE UNIQUE INDEX request_waiting ON request (recognition) WHERE status IN ('pending', 'approved');
CREATE INDEX request_by_status ON request (status, changed_at);
`;
