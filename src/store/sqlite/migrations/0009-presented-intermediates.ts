/** The CA certificates that clients sent with theirs, for TLS sessions that are resumed without them. Nothing is trusted for standing here. */
export const presentedIntermediates = `
CREATE TABLE presented_path (
  leaf TEXT PRIMARY KEY, -- hex SHA-256 of the client's certificate
  intermediates TEXT NOT NULL, -- the fingerprints, in order, separated by spaces
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX presented_path_by_use ON presented_path (used_at);

CREATE TABLE presented_intermediate (
  fingerprint TEXT PRIMARY KEY,
  der BLOB NOT NULL,
  used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX presented_intermediate_by_use ON presented_intermediate (used_at);
`;
