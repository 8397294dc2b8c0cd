/** What each use of a token was taken for, so that the same request is known when it is made again (contract §9). */
export const otpUses = `
CREATE TABLE otp_use (
  request_id  TEXT PRIMARY KEY,
  otp_id      TEXT NOT NULL REFERENCES otp (id) ON DELETE CASCADE,
  recognition TEXT NOT NULL, -- as in table request
  taken_at    INTEGER NOT NULL,
  issued_at   INTEGER -- null: not yet, or never
) STRICT, WITHOUT ROWID;
CREATE INDEX otp_use_by_recognition ON otp_use (recognition, taken_at);
CREATE INDEX otp_use_by_otp ON otp_use (otp_id);

INSERT INTO otp_use (request_id, otp_id, recognition, taken_at, issued_at)
SELECT id, otp_id, recognition, created_at, CASE status WHEN 'issued' THEN changed_at END FROM request
WHERE otp_id IS NOT NULL AND (status <> 'failed' OR (decider = 'ca' AND decided_at IS NOT NULL));
`;
