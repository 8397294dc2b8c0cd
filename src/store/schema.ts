/**
 * The tables that both drivers have. Times are milliseconds since the epoch; `position` is the insertion order, by
 * which lists are paged; JSON is text. Constraints prevent conflicting concurrent changes by two nodes.
 */

/** What differs between the drivers. */
export interface SchemaDialect {
  /** Type and constraint of the column `position`. */
  readonly position: string;
  readonly integer: string;
  readonly bytes: string;
  /** Follow the columns of a table, and of one that is stored in the order of its key. */
  readonly table: string;
  readonly keyed: string;
  /** Ends the columns of an index that a list walks by `position`. */
  readonly then: string;
  /** A further column of table certificate. */
  readonly foldedSans: string;
}

export const sharedTables = ({ position, integer, bytes, table, keyed, then, foldedSans }: SchemaDialect): string => `
CREATE TABLE otp (
  position   ${position},
  id         text NOT NULL UNIQUE,
  lookup     text NOT NULL UNIQUE, -- a keyed hash of the token
  hash       text NOT NULL,
  client_id  text NOT NULL,
  ca         text,
  created_at ${integer} NOT NULL,
  expires_at ${integer} NOT NULL,
  max_uses   ${integer} NOT NULL CHECK (max_uses > 0),
  uses       ${integer} NOT NULL CHECK (uses BETWEEN 0 AND max_uses),
  revoked_at ${integer}
)${table};
CREATE INDEX otp_by_client ON otp (client_id${then});
CREATE INDEX otp_revoked ON otp (position) WHERE revoked_at IS NOT NULL;
CREATE INDEX otp_consumed ON otp (position) WHERE revoked_at IS NULL AND uses >= max_uses;
CREATE INDEX otp_live ON otp (position, expires_at) WHERE revoked_at IS NULL AND uses < max_uses;

-- The request for which each use of a token was taken, so that the same request is recognized when it is repeated.
CREATE TABLE otp_use (
  request_id  text PRIMARY KEY,
  otp_id      text NOT NULL REFERENCES otp (id) ON DELETE CASCADE,
  recognition text NOT NULL, -- as in table request
  taken_at    ${integer} NOT NULL,
  issued_at   ${integer} -- null: not yet, or never
)${keyed};
CREATE INDEX otp_use_by_recognition ON otp_use (recognition, taken_at);
CREATE INDEX otp_use_by_otp ON otp_use (otp_id);

CREATE TABLE failure (
  key text NOT NULL,
  at  ${integer} NOT NULL
)${table};
CREATE INDEX failure_by_key ON failure (key, at);
CREATE INDEX failure_by_time ON failure (at);

CREATE TABLE lockout (
  key          text PRIMARY KEY,
  failures     ${integer} NOT NULL,
  locked_until ${integer} NOT NULL
)${keyed};
CREATE INDEX lockout_by_end ON lockout (locked_until, key);

-- Open reservations only: recording or releasing one removes it.
CREATE TABLE reservation (
  request_id  text PRIMARY KEY,
  instance    text NOT NULL, -- the process
  ca          text NOT NULL,
  label       text, -- where the certificate is requested; null: the CA's own label
  serial      text,
  requester   text NOT NULL,
  operation   text NOT NULL,
  subject     text NOT NULL,
  spki_sha256 text,
  otp_id      text REFERENCES otp (id),
  device_key  text,
  required_device text,
  created_at  ${integer} NOT NULL,
  UNIQUE (ca, serial)
)${keyed};

CREATE TABLE certificate (
  position             ${position},
  ca                   text NOT NULL,
  label                text, -- as in table reservation
  serial               text NOT NULL,
  subject              text NOT NULL,
  subject_folded       text NOT NULL, -- lower case, for the search
  sans                 text NOT NULL, -- a JSON array${foldedSans}
  not_before           ${integer} NOT NULL,
  not_after            ${integer} NOT NULL,
  issued_at            ${integer}, -- null: unknown; not_before counts
  fingerprint_sha256   text NOT NULL,
  requester            text NOT NULL,
  method               text NOT NULL,
  request_id           text NOT NULL,
  device               text, -- the id of its requester's device
  device_key           text,
  required_device      text, -- device_key, if the label issues to registered devices only
  key_identifier       text,
  archived_key_id      text, -- the key archive's identifier of the private key
  revocation_challenge text, -- RFC 7894 section 3.2, hashed
  revoked_at           ${integer},
  reason               text,
  invalidity_date      ${integer},
  der                  ${bytes} NOT NULL,
  UNIQUE (serial, ca)
)${table};
CREATE INDEX certificate_by_end ON certificate (not_after, revoked_at, ca, label);
CREATE INDEX certificate_by_ca ON certificate (ca${then});
CREATE INDEX certificate_by_label ON certificate (label${then}) WHERE label IS NOT NULL;
CREATE INDEX certificate_of_other_label ON certificate (ca) WHERE label IS NOT NULL;
CREATE INDEX certificate_by_requester ON certificate (requester${then});
CREATE INDEX certificate_by_request ON certificate (request_id);
CREATE INDEX certificate_by_key_identifier ON certificate (key_identifier${then}) WHERE key_identifier IS NOT NULL;
CREATE INDEX certificate_by_device ON certificate (device_key${then}) WHERE device_key IS NOT NULL;
CREATE INDEX certificate_by_device_id ON certificate (device${then}) WHERE device IS NOT NULL;
CREATE INDEX certificate_revoked ON certificate (position) WHERE revoked_at IS NOT NULL;

-- The queue of requests that wait for a decision, or have had one.
CREATE TABLE request (
  position         ${position},
  id               text NOT NULL UNIQUE,
  ca               text NOT NULL,
  operation        text NOT NULL,
  subject          text NOT NULL,
  sans             text NOT NULL, -- a JSON array
  key_type         text NOT NULL,
  requester        text NOT NULL,
  method           text NOT NULL,
  requester_id     text NOT NULL,
  requester_issuer text,
  requester_sans   text NOT NULL, -- a JSON array
  names            text NOT NULL, -- the decided names, JSON: what is approved is what is issued
  status           text NOT NULL CHECK (status IN ('pending', 'approved', 'issued', 'rejected', 'failed', 'expired')),
  created_at       ${integer} NOT NULL,
  decided_at       ${integer},
  decided_by       text NOT NULL, -- JSON: [{"key", "name"}], in order
  approvals        ${integer} NOT NULL, -- how many administrators must approve, at least
  reason           text,
  serial           text,
  csr              ${bytes} NOT NULL,
  format           text NOT NULL CHECK (format IN ('pkcs10', 'crmf')),
  spki_sha256      text, -- null: the server generates the key
  otp_id           text REFERENCES otp (id),
  recognition      text NOT NULL, -- a hash of requester, CA, operation, public key and names
  changed_at       ${integer} NOT NULL, -- when it got its status
  decider          text NOT NULL CHECK (decider IN ('admin', 'ca')),
  reference        text, -- the remote CA's; null: the result of the submission is unknown
  polled_at        ${integer}, -- when the requester last asked
  missing_since    ${integer}, -- since when the remote CA works and does not know it
  final            ${integer} NOT NULL DEFAULT 0 CHECK (final IN (0, 1)), -- failed for good: the same request is not queued again
  device           text,
  device_key       text,
  required_device  text,
  override         text -- what an external service decided about names and validity, JSON
)${table};
CREATE INDEX request_by_recognition ON request (recognition, position);
-- A waiting request exists once, even if it is queued concurrently.
CREATE UNIQUE INDEX request_waiting ON request (recognition) WHERE status IN ('pending', 'approved');
CREATE INDEX request_by_status ON request (status, changed_at);
CREATE INDEX request_in_status ON request (status${then});
CREATE INDEX request_by_ca ON request (ca${then});
CREATE INDEX request_by_requester ON request (requester${then});
CREATE INDEX request_by_device ON request (device_key${then}) WHERE device_key IS NOT NULL;
CREATE INDEX request_by_device_id ON request (device${then}) WHERE device IS NOT NULL;
CREATE INDEX request_by_otp ON request (otp_id) WHERE otp_id IS NOT NULL;

CREATE TABLE cmc_message (
  position        ${position},
  key             text NOT NULL UNIQUE, -- a hash of CA, sender, transactionId, senderNonce and content
  id              text NOT NULL, -- the ids of its requests are derived from it
  transaction_key text NOT NULL, -- a hash of CA, sender and transactionId
  instance        text, -- the process that is at work on it
  created_at      ${integer} NOT NULL,
  nonce           ${bytes}, -- the senderNonce of the latest response
  answer          ${bytes} -- DER of a final response
)${table};
CREATE INDEX cmc_message_by_transaction ON cmc_message (transaction_key);
CREATE INDEX cmc_message_by_time ON cmc_message (created_at);
CREATE INDEX cmc_message_by_instance ON cmc_message (instance) WHERE instance IS NOT NULL;

-- The latest CRL of each CA, and the last number that was given out, even if that list was never completed.
CREATE TABLE crl (
  ca          text PRIMARY KEY,
  last_number ${integer} NOT NULL,
  number      ${integer},
  this_update ${integer},
  next_update ${integer},
  der         ${bytes}
)${table};

-- Changes that a CRL must contain: how many there were, and when the first came that is in no list yet. It is not in table crl, where
-- each change would write the list again.
CREATE TABLE crl_change (
  ca         text PRIMARY KEY,
  changes    ${integer} NOT NULL,
  changed_at ${integer} -- null: the latest CRL has all
)${keyed};

-- The last audit record that each receiver of notifications has; node: '' is the chain of this database.
CREATE TABLE notification (
  name text NOT NULL,
  node text NOT NULL,
  seq  ${integer} NOT NULL,
  PRIMARY KEY (name, node)
)${keyed};

-- Replacement campaigns.
CREATE TABLE renewal (
  position        ${position},
  id              text NOT NULL UNIQUE,
  selection       text NOT NULL, -- JSON: the filters of the certificate list
  begins          ${integer} NOT NULL,
  due             ${integer} NOT NULL,
  created_by      text NOT NULL,
  reason          text,
  explanation_url text,
  overdue_at      ${integer} -- when overdue certificates were reported
)${table};

-- The CA certificates that clients sent with theirs, for TLS sessions that are resumed without them. They are not trusted.
CREATE TABLE presented_path (
  leaf          text PRIMARY KEY, -- hex SHA-256 of the client's certificate
  intermediates text NOT NULL, -- the fingerprints, in order, separated by spaces
  used_at       ${integer} NOT NULL
)${keyed};
CREATE INDEX presented_path_by_use ON presented_path (used_at);
CREATE TABLE presented_intermediate (
  fingerprint text PRIMARY KEY,
  der         ${bytes} NOT NULL,
  used_at     ${integer} NOT NULL
)${table};
CREATE INDEX presented_intermediate_by_use ON presented_intermediate (used_at);

CREATE TABLE device (
  position   ${position},
  key        text NOT NULL UNIQUE, -- of this entry: a later device with the same id has another key
  id         text NOT NULL UNIQUE,
  ca         text,
  enabled    ${integer} NOT NULL CHECK (enabled IN (0, 1)),
  not_after  ${integer},
  note       text,
  match      text, -- a JSON object
  match_key  text, -- a hash of everything that the match requires, or the fingerprint
  attributes text NOT NULL, -- a JSON object
  created_at ${integer} NOT NULL,
  changed_at ${integer} NOT NULL
)${table};
CREATE INDEX device_by_match ON device (match_key) WHERE match_key IS NOT NULL;
CREATE INDEX device_by_ca ON device (ca, position) WHERE ca IS NOT NULL;
CREATE INDEX device_disabled ON device (position) WHERE enabled = 0;
CREATE INDEX device_by_end ON device (not_after) WHERE not_after IS NOT NULL;

-- Administrators who have signed in.
CREATE TABLE session (
  position      ${position},
  id_hash       text NOT NULL UNIQUE,
  administrator text NOT NULL,
  method        text NOT NULL,
  claims        text, -- of the OpenID provider, JSON
  certificate   text,
  created_at    ${integer} NOT NULL,
  seen_at       ${integer} NOT NULL,
  ends_at       ${integer} NOT NULL
)${table};
CREATE INDEX session_by_administrator ON session (administrator, created_at, position);
CREATE INDEX session_by_end ON session (ends_at);
`;

/** Version 2: what belongs to CAs elsewhere. */
export const upstreamTables = ({ keyed }: Pick<SchemaDialect, 'keyed'>): string => `
-- The accounts of this server at ACME servers.
CREATE TABLE acme_account (
  directory  text NOT NULL, -- the URL of the directory
  thumbprint text NOT NULL, -- of the account key, RFC 7638
  url        text NOT NULL,
  PRIMARY KEY (directory, thumbprint)
)${keyed};

-- The names that were authorized for a certificate, where its CA certified others.
CREATE TABLE authorized_names (
  serial text NOT NULL,
  ca     text NOT NULL,
  names  text NOT NULL, -- as in table request
  PRIMARY KEY (serial, ca),
  FOREIGN KEY (serial, ca) REFERENCES certificate (serial, ca) ON DELETE CASCADE
)${keyed};
`;

/**
 * Version 3: certificates by fingerprint, and the fleet (docs/guides/fleet.md). Servers write all of it in the background. Tables holder, holder_count and fleet_progress
 * are derived: from the other tables, and from the audit records that say what has changed, whichever version wrote them.
 */
export const fleetTables = ({ position, integer, bytes, table, keyed }: SchemaDialect): string => `
CREATE INDEX certificate_by_fingerprint ON certificate (fingerprint_sha256);

-- What was seen of each certificate on the EST listener. A row exists from the issuance on, or from the first use.
CREATE TABLE certificate_use (
  serial          text NOT NULL,
  ca              text NOT NULL,
  holder          text, -- key in table holder; null: not determined yet, or nobody's (of a CA, a registration authority, this server)
  issued_at       ${integer}, -- as in table certificate, or its not_before; null while holder is not determined
  renewed_serial  text, -- the certificate with which it was requested, if that was a renewal
  renewed_ca      text,
  first_used_at   ${integer}, -- when it first authenticated, in any operation
  last_used_at    ${integer},
  connected_at    ${integer}, -- when the connection of the last use began
  tls_version     text, -- 'TLSv1.2', 'TLSv1.3' of the last use; before the first, of the request that issued it. null: unknown, or a proxy's
  names_label     ${integer}, -- whether the last use, or that request, named the label: 0 or 1
  renewal_info_at ${integer}, -- when renewal-info was last requested for it, by anybody
  reported        text NOT NULL DEFAULT '', -- the states of its holder that were reported or existed before, each followed by a space
  PRIMARY KEY (serial, ca),
  FOREIGN KEY (serial, ca) REFERENCES certificate (serial, ca) ON DELETE CASCADE
)${keyed};
CREATE INDEX certificate_use_by_holder ON certificate_use (holder, issued_at) WHERE holder IS NOT NULL;
CREATE INDEX certificate_use_by_renewed ON certificate_use (renewed_serial, renewed_ca) WHERE renewed_serial IS NOT NULL;

-- The answers of cacerts that were given over connections with a certificate.
CREATE TABLE given_chain (
  position ${position},
  sha256   text NOT NULL UNIQUE, -- hex, of der
  der      ${bytes} NOT NULL -- the certificates, one after another
)${table};
CREATE TABLE given_to (
  serial text NOT NULL,
  ca     text NOT NULL,
  chain  ${integer} NOT NULL, -- position in table given_chain
  PRIMARY KEY (serial, ca, chain),
  FOREIGN KEY (serial, ca) REFERENCES certificate (serial, ca) ON DELETE CASCADE
)${keyed};

-- Passes for one more renewal with a certificate that has expired.
CREATE TABLE rescue (
  serial      text NOT NULL,
  ca          text NOT NULL,
  until       ${integer} NOT NULL,
  reason      text,
  created_at  ${integer} NOT NULL,
  created_by  text NOT NULL, -- the administrator, for people
  request_id  text, -- of the renewal that used it; null: open
  recognition text, -- of that renewal, as in table request
  PRIMARY KEY (serial, ca),
  FOREIGN KEY (serial, ca) REFERENCES certificate (serial, ca) ON DELETE CASCADE
)${keyed};

CREATE TABLE holder (
  position        ${position},
  key             text NOT NULL UNIQUE, -- a hash of label, names and device_key; for a device that never had a certificate, of device_key
  label           text, -- null: of a device that no label is set for
  device          text,
  device_key      text,
  serial          text, -- the newest certificate that is not revoked; null without one
  ca              text,
  subject         text, -- RFC 4514
  sans            text NOT NULL, -- a JSON array
  issued_at       ${integer}, -- of the newest certificate; for a device without one, when it got its first
  ends            ${integer} NOT NULL, -- expiry of the newest certificate; without one, a time after all others
  window_end      ${integer}, -- of its renewal
  state           text, -- null: in no list
  since           ${integer},
  next_at         ${integer}, -- when the state is to be derived again; null: never
  first_failed_at ${integer}, -- first rejected renewal after the newest certificate was issued
  last_failed_at  ${integer},
  last_code       text, -- of the error
  last_message    text,
  request_id      text, -- of its queued renewals, separated by spaces
  entered_at      ${integer}, -- when it got a state that is to be reported; null: reported
  reported_at     ${integer}
)${table};
CREATE INDEX holder_by_state ON holder (state, ends, position, label) WHERE state IS NOT NULL;
CREATE INDEX holder_by_end ON holder (ends, position, label, state) WHERE state IS NOT NULL;
CREATE INDEX holder_by_device ON holder (device) WHERE device IS NOT NULL;
CREATE INDEX holder_by_next ON holder (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX holder_by_entry ON holder (entered_at) WHERE entered_at IS NOT NULL;
CREATE INDEX holder_by_report ON holder (reported_at) WHERE reported_at IS NOT NULL;

-- How many holders are in each state.
CREATE TABLE holder_count (
  label text NOT NULL, -- '': none
  state text NOT NULL,
  n     ${integer} NOT NULL,
  PRIMARY KEY (label, state)
)${keyed};

-- How far the derivation is: in table certificate, and in each chain of audit records ('audit ' and the node).
CREATE TABLE fleet_progress (
  name   text PRIMARY KEY,
  upto   ${integer} NOT NULL,
  detail text
)${keyed};
`;

/** Version 4: the requests that were accepted with a pass of table rescue. */
export const rescueTables = ({ keyed }: Pick<SchemaDialect, 'keyed'>): string => `
CREATE TABLE rescue_request (
  request_id  text PRIMARY KEY,
  serial      text NOT NULL,
  ca          text NOT NULL,
  recognition text NOT NULL, -- as in table request
  FOREIGN KEY (serial, ca) REFERENCES rescue (serial, ca) ON DELETE CASCADE
)${keyed};
CREATE INDEX rescue_request_by_pass ON rescue_request (serial, ca);
`;

/** Version 5: IDs of devices are unique per label. */
export const LABELED_DEVICES = `
-- The ID, where another device has it in column id; null: it is in column id, which stays unique for servers of version 0.2.
ALTER TABLE device ADD COLUMN name text;
CREATE UNIQUE INDEX device_by_id ON device (coalesce(name, id), coalesce(ca, ''));
`;

/** Version 6: failures of renewals since each certificate, because the newest one may be revoked, and indices. */
export const failures = ({ integer }: Pick<SchemaDialect, 'integer'>): string => `
-- First rejected renewal of its holder after it was issued.
ALTER TABLE certificate_use ADD COLUMN first_failed_at ${integer};
ALTER TABLE holder DROP COLUMN first_failed_at;
CREATE INDEX certificate_use_by_failure ON certificate_use (holder, first_failed_at) WHERE first_failed_at IS NOT NULL;
-- One certificate may be renewed thousands of times: the newest ones are looked at.
DROP INDEX certificate_use_by_renewed;
CREATE INDEX certificate_use_by_renewal ON certificate_use (renewed_serial, renewed_ca, issued_at) WHERE renewed_serial IS NOT NULL;
`;
