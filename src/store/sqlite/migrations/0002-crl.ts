/** The latest CRL of each CA, and the last number that was given out, whether or not that list came to be. */
export const crl = `
CREATE TABLE crl (
  ca          TEXT PRIMARY KEY,
  last_number INTEGER NOT NULL,
  number      INTEGER,
  this_update INTEGER,
  next_update INTEGER,
  der         BLOB
) STRICT;
`;
