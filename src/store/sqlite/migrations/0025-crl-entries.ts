/** All that a CRL says of revoked certificates stands in an index of its own: their rows, each on another page, are not read for it. */
export const crlEntries = `
DROP INDEX certificate_by_revocation;
CREATE INDEX crl_entry ON certificate (ca, position, revoked_at, not_after, serial, reason, invalidity_date) WHERE revoked_at IS NOT NULL;
`;
