import { FIRST_VERSION } from '../calls/errors.ts';
import {
  fleetTables,
  failures,
  LABELED_DEVICES,
  rescueTables,
  type SchemaDialect,
  sharedTables,
  upstreamTables,
} from '../schema.ts';

const DIALECT: SchemaDialect = {
  position: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  integer: 'bigint',
  bytes: 'bytea',
  table: '',
  keyed: '',
  then: ', position',
  foldedSans: '\n  sans_folded text NOT NULL, -- the names in lower case, a line each',
};

/** The schema of the PostgreSQL store: the shared tables, and those of nodes and of the audit log. */
const SCHEMA = `
-- The nodes that live, the one that is on duty, and what they share.
CREATE TABLE node (
  name        text PRIMARY KEY,
  incarnation uuid NOT NULL, -- new at each start, and after the node was taken for dead
  host        text NOT NULL,
  instance    text NOT NULL, -- its process: the owner of reservations and CMC messages
  started     timestamptz NOT NULL,
  heartbeat   timestamptz NOT NULL -- by the database's clock
);
CREATE TABLE duty (
  name        text PRIMARY KEY,
  incarnation uuid NOT NULL, -- of the node that has it
  until       timestamptz NOT NULL
);
CREATE TABLE shared_secret (
  name        text PRIMARY KEY,
  period      bigint NOT NULL,
  sealed      bytea NOT NULL -- under store.shared_key
);

${sharedTables(DIALECT)}
CREATE INDEX reservation_by_instance ON reservation (instance);
CREATE INDEX reservation_by_otp ON reservation (otp_id) WHERE otp_id IS NOT NULL;
CREATE INDEX certificate_by_revocation ON certificate (ca, position) WHERE revoked_at IS NOT NULL;
CREATE INDEX certificate_by_issue ON certificate ((coalesce(issued_at, not_before)));

-- A check value of the key of the lookups; one row once there is a key.
CREATE TABLE lookup_key (
  only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  key_check text NOT NULL
);

-- Each node has its own chain of records.
CREATE TABLE audit (
  position   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node       text NOT NULL,
  seq        bigint NOT NULL,
  time       bigint NOT NULL,
  type       text NOT NULL,
  line       text NOT NULL, -- the record, as the node's audit file has it
  subject    text, -- of the record, in lower case, as are the next four: the lists search them
  ca         text,
  label      text,
  serial     text,
  request_id text,
  device_key text,
  UNIQUE (node, seq)
);
CREATE INDEX audit_by_type ON audit (type, position);
CREATE INDEX audit_by_time ON audit (time, position);
CREATE INDEX audit_by_ca ON audit (ca, position) WHERE ca IS NOT NULL;
CREATE INDEX audit_by_serial ON audit (serial, position) WHERE serial IS NOT NULL;
CREATE INDEX audit_by_request ON audit (request_id, position) WHERE request_id IS NOT NULL;
CREATE INDEX audit_by_device ON audit (device_key, position) WHERE device_key IS NOT NULL;

-- The end of each chain, and which part of it is in the current audit file of its node.
CREATE TABLE audit_head (
  node       text PRIMARY KEY,
  seq        bigint NOT NULL,
  hash       text NOT NULL,
  told       bigint NOT NULL, -- the last record that is about more than other chains
  file_start bigint NOT NULL, -- the file's first record
  file_size  bigint NOT NULL  -- bytes
);

-- Counts of audit records by the hour; each node has its own rows.
CREATE TABLE statistic (
  node  text NOT NULL,
  hour  bigint NOT NULL, -- of the epoch
  ca    text NOT NULL, -- '': no CA
  what  text NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (hour, ca, what, node)
);

-- One row, written to find out whether the database can be written.
CREATE TABLE probe (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), at bigint NOT NULL);
INSERT INTO probe (at) VALUES (0);

-- Parts of names are found by trigrams if the database has pg_trgm; otherwise by a scan of all names.
DO $$
BEGIN
  CREATE EXTENSION IF NOT EXISTS pg_trgm;
  CREATE INDEX certificate_by_subject_part ON certificate USING gin (subject_folded gin_trgm_ops);
  CREATE INDEX certificate_by_san_part ON certificate USING gin (sans_folded gin_trgm_ops);
  CREATE INDEX audit_by_subject_part ON audit USING gin (subject gin_trgm_ops) WHERE subject IS NOT NULL;
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
  RAISE NOTICE 'pg_trgm is not available: %', SQLERRM;
END $$;
`;

export interface Migration {
  readonly sql: string;
  /**
   * The oldest schema version whose programs continue to work after it. A migration that only adds keeps earlier
   * versions working.
   */
  readonly serves: number;
}

/**
 * In order: the first creates the schema, each other upgrades a database by one version. Do not change a released migration.
 *
 * Nodes of the previous version continue to work on the database. So a migration that expands the schema only adds, keeps what it doubles
 * in step by triggers, and locks no table for longer than a second (docs/guides/postgresql.md). A migration that removes something `serves` only
 * versions that no longer use it.
 */
export const MIGRATIONS: readonly Migration[] = [
  { sql: SCHEMA, serves: FIRST_VERSION },
  { sql: upstreamTables(DIALECT), serves: FIRST_VERSION },
  { sql: fleetTables(DIALECT), serves: FIRST_VERSION },
  { sql: rescueTables(DIALECT), serves: FIRST_VERSION },
  { sql: LABELED_DEVICES, serves: FIRST_VERSION },
  { sql: failures(DIALECT), serves: FIRST_VERSION },
];
