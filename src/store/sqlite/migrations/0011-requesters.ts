/**
 * What tells requesters apart: of a certificate's holder also the issuer and the SANs, which older rows do not say. Those stay without, so
 * that nobody is taken for their requester; a token, a principal and a shared secret are what they were.
 */
export const requesters = `
ALTER TABLE request ADD COLUMN requester_id TEXT;
ALTER TABLE request ADD COLUMN requester_issuer TEXT;
ALTER TABLE request ADD COLUMN requester_sans TEXT NOT NULL DEFAULT '[]'; -- a JSON array
UPDATE request SET requester_id = 'otp:' || otp_id WHERE method = 'otp' AND otp_id IS NOT NULL;
UPDATE request SET requester_id = 'gssapi:' || requester WHERE method = 'gssapi';
UPDATE request SET requester_id = 'cmc:' || requester WHERE method = 'cmc' AND requester LIKE 'identification:%';
`;
