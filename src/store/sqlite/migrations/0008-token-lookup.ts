/**
 * Tokens are found by a keyed hash in place of their first characters. The hashes are computed when the database is
 * opened, with the key (../token-lookups.ts).
 */
export const tokenLookup = `
ALTER TABLE otp RENAME COLUMN selector TO lookup;

-- The key that the lookups were made with; one row once there is one.
CREATE TABLE lookup_key (
  only      INTEGER PRIMARY KEY CHECK (only = 1),
  key_check TEXT NOT NULL,
  -- 1: nothing of former selectors is left in freed parts of the file.
  cleaned   INTEGER NOT NULL CHECK (cleaned IN (0, 1))
) STRICT;
`;
