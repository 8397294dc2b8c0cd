/** Where the private key of a certificate was archived. */
export const archivedKeys = `
ALTER TABLE certificate ADD COLUMN archived_key_id TEXT; -- the key archive's own identifier of it
`;
