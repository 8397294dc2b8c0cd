/** Administrators who have signed in. */
export const sessions = `
CREATE TABLE session (
  id_hash       TEXT PRIMARY KEY,
  administrator TEXT NOT NULL,
  method        TEXT NOT NULL,
  certificate   TEXT,
  created_at    INTEGER NOT NULL,
  seen_at       INTEGER NOT NULL,
  ends_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX session_by_administrator ON session (administrator, created_at);
CREATE INDEX session_by_end ON session (ends_at);
`;
