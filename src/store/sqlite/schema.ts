import { SEARCH_COLUMNS } from '../audit-store.ts';
import {
  fleetTables,
  failures,
  LABELED_DEVICES,
  rescueTables,
  type SchemaDialect,
  sharedTables,
  upstreamTables,
} from '../schema.ts';

/** Reads a field of an audit record. */
export const auditField = (name: (typeof SEARCH_COLUMNS)[number]): string => `line ->> '$.${name}'`;

/** Each has an index `audit_by_…`. A label is searched along that of its CA. */
export const INDEXED_FIELDS = SEARCH_COLUMNS.filter((name) => name !== 'label');

const auditIndexes = INDEXED_FIELDS.map(
  (name) =>
    `CREATE INDEX audit_by_${name} ON audit (${auditField(name)}) WHERE indexed = 1 AND ${auditField(name)} IS NOT NULL;`,
);

const DIALECT: SchemaDialect = {
  position: 'INTEGER PRIMARY KEY',
  integer: 'INTEGER',
  bytes: 'BLOB',
  table: ' STRICT',
  keyed: ' STRICT, WITHOUT ROWID',
  // Each entry of an index ends with it.
  then: '',
  foldedSans: '',
};

/** The schema of the SQLite store: the shared tables, and what the searches and the audit log need. */
const SCHEMA = `${sharedTables(DIALECT)}
-- Everything that a CRL contains of a revoked certificate, so that the rows, each on another page, are not read for it.
CREATE INDEX crl_entry ON certificate (ca, position, revoked_at, not_after, serial, reason, invalidity_date) WHERE revoked_at IS NOT NULL;

-- A check value of the key of the lookups; one row once there is a key.
CREATE TABLE lookup_key (
  only      INTEGER PRIMARY KEY CHECK (only = 1),
  key_check TEXT NOT NULL
) STRICT;

-- The searched fields are read from the record, so that they cannot differ from it. They are indexed later, many rows at once
-- (search/index-rows.ts), because a record changes a page of each index. Generated columns would be computed at each insertion.
CREATE TABLE audit (
  seq        INTEGER PRIMARY KEY,
  time       INTEGER NOT NULL,
  type       TEXT NOT NULL,
  line       TEXT NOT NULL, -- the record, as the audit file has it
  indexed    INTEGER NOT NULL DEFAULT 1 -- 0 or 1
) STRICT;
CREATE INDEX audit_by_type ON audit (type) WHERE indexed = 1;
${auditIndexes.join('\n')}

-- One row: the end of the chain, and which part of it is in the current audit file.
CREATE TABLE audit_head (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  seq        INTEGER NOT NULL,
  hash       TEXT NOT NULL,
  file_start INTEGER NOT NULL, -- the file's first record
  file_size  INTEGER NOT NULL  -- bytes
) STRICT;
INSERT INTO audit_head VALUES (1, 0, '${'0'.repeat(64)}', 1, 0);

-- Counts of audit records by the hour (audit-log.ts).
CREATE TABLE statistic (
  hour  INTEGER NOT NULL, -- of the epoch
  ca    TEXT NOT NULL,    -- '': no CA
  what  TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (hour, ca, what)
) STRICT, WITHOUT ROWID;

-- What parts of names are found by. These tables are filled later (search/index-rows.ts), so that recording a certificate does not wait;
-- search_progress has the last row that is in them.
CREATE VIRTUAL TABLE certificate_names USING fts5 (
  subject, sans, content = '', contentless_delete = 1, detail = column, tokenize = 'trigram case_sensitive 1'
);
-- The subjects of audit records, each once.
CREATE TABLE audit_subject (
  id      INTEGER PRIMARY KEY,
  subject TEXT NOT NULL UNIQUE
) STRICT;
CREATE VIRTUAL TABLE audit_subject_names USING fts5 (
  subject, content = '', contentless_delete = 1, detail = column, tokenize = 'trigram case_sensitive 1'
);
CREATE TABLE search_progress (
  list TEXT PRIMARY KEY,
  upto INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO search_progress VALUES ('certificate', 0), ('audit', 0);
-- The lowest and the highest time in a block of rows, so that a search by time skips blocks.
CREATE TABLE search_zone (
  kind  TEXT NOT NULL CHECK (kind IN ('certificate.end', 'certificate.issue', 'audit.time')),
  first INTEGER NOT NULL,
  last  INTEGER NOT NULL,
  low   INTEGER NOT NULL,
  high  INTEGER NOT NULL,
  PRIMARY KEY (kind, first)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER certificate_forgotten AFTER DELETE ON certificate BEGIN
  DELETE FROM certificate_names WHERE rowid = OLD.position;
END;
-- SQLite gives out the position of the newest row again when that is deleted.
CREATE TRIGGER newest_certificate_forgotten AFTER DELETE ON certificate
WHEN NOT EXISTS (SELECT 1 FROM certificate WHERE position > OLD.position) BEGIN
  UPDATE search_progress SET upto = min(upto, OLD.position - 1) WHERE list = 'certificate';
  DELETE FROM search_zone WHERE kind LIKE 'certificate.%' AND last >= OLD.position;
END;

-- One row, written to find out whether the database can be written.
CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at INTEGER NOT NULL) STRICT;
INSERT INTO probe VALUES (1, 0);
`;

/**
 * SQL scripts in order: the first creates the schema, each other upgrades a database by one version. Do not change a
 * released script.
 */
export const MIGRATIONS: readonly string[] = [
  SCHEMA,
  upstreamTables(DIALECT),
  fleetTables(DIALECT),
  rescueTables(DIALECT),
  LABELED_DEVICES,
  failures(DIALECT),
];
