/** How many administrators had to approve a request when it was queued. */
export const approvals = `
ALTER TABLE request ADD COLUMN approvals INTEGER NOT NULL DEFAULT 1;
`;
