/** A queued request for a key that the server generates has no public key yet. */
export const generatedKeys = `
ALTER TABLE request ADD COLUMN spki TEXT;
UPDATE request SET spki = spki_sha256;
ALTER TABLE request DROP COLUMN spki_sha256;
ALTER TABLE request RENAME COLUMN spki TO spki_sha256;
`;
