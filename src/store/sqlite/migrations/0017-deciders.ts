/** Who has decided about a queued request; there may have to be several. */
export const deciders = `
ALTER TABLE request ADD COLUMN decided_by TEXT NOT NULL DEFAULT '[]'; -- JSON: [{"key", "name"}], in order
`;
