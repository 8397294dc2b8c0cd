/** Full CMC: which messages were taken, under which ids, and how they were answered; requests that are no PKCS#10. */
export const cmc = `
CREATE TABLE cmc_message (
  position    INTEGER PRIMARY KEY,
  key         TEXT NOT NULL UNIQUE, -- a hash of CA, sender, transactionId, senderNonce and content
  id          TEXT NOT NULL, -- the ids of its requests come from it
  transaction_key TEXT NOT NULL, -- a hash of CA, sender and transactionId
  instance    TEXT, -- the process that is at work on it
  created_at  INTEGER NOT NULL,
  nonce       BLOB, -- the senderNonce of the latest answer
  status      INTEGER, -- of a final answer
  answer      BLOB, -- DER
  CHECK ((status IS NULL) = (answer IS NULL))
) STRICT;
CREATE INDEX cmc_message_by_transaction ON cmc_message (transaction_key);
CREATE INDEX cmc_message_by_time ON cmc_message (created_at);
CREATE INDEX cmc_message_by_instance ON cmc_message (instance) WHERE instance IS NOT NULL;

ALTER TABLE request ADD COLUMN format TEXT NOT NULL DEFAULT 'pkcs10' CHECK (format IN ('pkcs10', 'crmf'));

ALTER TABLE certificate ADD COLUMN key_identifier TEXT; -- of those that were recorded from this version on
CREATE INDEX certificate_by_key_identifier ON certificate (key_identifier) WHERE key_identifier IS NOT NULL;
CREATE INDEX certificate_by_request ON certificate (request_id);
`;
