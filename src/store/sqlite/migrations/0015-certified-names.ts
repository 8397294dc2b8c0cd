/** The names that were decided for a queued request: what is approved is what is issued, whatever templates say by then. */
export const certifiedNames = `
ALTER TABLE request ADD COLUMN names TEXT; -- JSON; NULL: those of the request itself
`;
