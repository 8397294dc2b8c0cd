/**
 * An index for each filter of the lists. Entries of one value are in the order of insertion, which lists are in. What an audit record is
 * found by is read out of its line, so that it cannot say anything else.
 */
export const filters = `
ALTER TABLE certificate ADD COLUMN issued_at INTEGER; -- NULL: not known, and not_before stands for it
CREATE INDEX certificate_by_ca ON certificate (ca);
CREATE INDEX certificate_by_requester ON certificate (requester);
CREATE INDEX certificate_revoked ON certificate (position) WHERE revoked_at IS NOT NULL;

CREATE INDEX otp_revoked ON otp (position) WHERE revoked_at IS NOT NULL;
CREATE INDEX otp_consumed ON otp (position) WHERE revoked_at IS NULL AND uses >= max_uses;
CREATE INDEX otp_live ON otp (position, expires_at) WHERE revoked_at IS NULL AND uses < max_uses;

CREATE INDEX request_in_status ON request (status);
CREATE INDEX request_by_ca ON request (ca);
CREATE INDEX request_by_requester ON request (requester);
CREATE INDEX request_by_device_id ON request (device) WHERE device IS NOT NULL;

ALTER TABLE audit ADD COLUMN subject TEXT GENERATED ALWAYS AS (line ->> '$.subject') VIRTUAL;
ALTER TABLE audit ADD COLUMN ca TEXT GENERATED ALWAYS AS (line ->> '$.ca') VIRTUAL;
ALTER TABLE audit ADD COLUMN serial TEXT GENERATED ALWAYS AS (line ->> '$.serial') VIRTUAL;
ALTER TABLE audit ADD COLUMN request_id TEXT GENERATED ALWAYS AS (line ->> '$.request_id') VIRTUAL;
CREATE INDEX audit_by_subject ON audit (subject) WHERE subject IS NOT NULL;
CREATE INDEX audit_by_ca ON audit (ca) WHERE ca IS NOT NULL;
CREATE INDEX audit_by_serial ON audit (serial) WHERE serial IS NOT NULL;
CREATE INDEX audit_by_request ON audit (request_id) WHERE request_id IS NOT NULL;
`;
