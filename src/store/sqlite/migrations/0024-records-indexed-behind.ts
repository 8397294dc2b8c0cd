/**
 * What audit records are found by is filled behind them (../search/index-rows.ts), many at once: a record for itself changes a page of each
 * index, and a page that is changed is written whole. Which are not in the indexes yet, `search_progress` tells as well.
 */
export const recordsIndexedBehind = `
DROP INDEX audit_by_time;
DROP INDEX audit_by_type;
DROP INDEX audit_by_subject;
DROP INDEX audit_by_ca;
DROP INDEX audit_by_serial;
DROP INDEX audit_by_request;
ALTER TABLE audit ADD COLUMN indexed INTEGER NOT NULL DEFAULT 1; -- 0 or 1
CREATE INDEX audit_by_type ON audit (type) WHERE indexed = 1;
CREATE INDEX audit_by_subject ON audit (subject) WHERE indexed = 1 AND subject IS NOT NULL;
CREATE INDEX audit_by_ca ON audit (ca) WHERE indexed = 1 AND ca IS NOT NULL;
CREATE INDEX audit_by_serial ON audit (serial) WHERE indexed = 1 AND serial IS NOT NULL;
CREATE INDEX audit_by_request ON audit (request_id) WHERE indexed = 1 AND request_id IS NOT NULL;
`;
