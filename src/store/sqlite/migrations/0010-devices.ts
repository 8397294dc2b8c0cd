/** The devices that are registered, and whose certificates, requests and audit records are whose. */
export const devices = `
CREATE TABLE device (
  position   INTEGER PRIMARY KEY,
  key        TEXT NOT NULL UNIQUE, -- of this entry: a later device of the same id has another one
  id         TEXT NOT NULL UNIQUE,
  ca         TEXT,
  enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  not_after  INTEGER,
  note       TEXT,
  match      TEXT, -- a JSON object
  match_key  TEXT, -- a hash of all that the match asks for, or the fingerprint
  attributes TEXT NOT NULL, -- a JSON object
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX device_by_match ON device (match_key) WHERE match_key IS NOT NULL;
CREATE INDEX device_by_ca ON device (ca, position) WHERE ca IS NOT NULL;
CREATE INDEX device_disabled ON device (position) WHERE enabled = 0;

-- Which audit records tell of a device.
CREATE TABLE device_event (
  device_key TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (device_key, seq)
) STRICT, WITHOUT ROWID;

ALTER TABLE certificate ADD COLUMN device TEXT; -- the id that its requester had
ALTER TABLE certificate ADD COLUMN device_key TEXT;
CREATE INDEX certificate_by_device ON certificate (device_key) WHERE device_key IS NOT NULL;
CREATE INDEX certificate_by_device_id ON certificate (device) WHERE device IS NOT NULL;
ALTER TABLE request ADD COLUMN device TEXT;
ALTER TABLE request ADD COLUMN device_key TEXT;
CREATE INDEX request_by_device ON request (device_key) WHERE device_key IS NOT NULL;
ALTER TABLE reservation ADD COLUMN device_key TEXT;
CREATE INDEX otp_by_client ON otp (client_id);
`;
