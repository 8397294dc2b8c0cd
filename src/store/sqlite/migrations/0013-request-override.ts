/** What an external service has decided of a request's names and validity before it was queued (a JSON object). */
export const requestOverride = `
ALTER TABLE request ADD COLUMN override TEXT;
`;
