/** What the holder of a certificate may have it revoked with (RFC 7894 §3.2), hashed. */
export const revocationChallenges = `
ALTER TABLE certificate ADD COLUMN revocation_challenge TEXT;
`;
