/**
 * What parts of names are found by. The tables are filled behind the rows that they tell of (../search/index-rows.ts), so that recording a
 * certificate does not wait for it; `search_progress` tells up to which row.
 */
export const search = `
CREATE VIRTUAL TABLE certificate_names USING fts5 (
  subject, sans, content = '', contentless_delete = 1, detail = column, tokenize = 'trigram case_sensitive 1'
);

-- Who the audit records name, each once.
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

-- The least and the greatest of a time among the rows of a block: what lies in none of them need not be looked for there.
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
-- The number of the newest row is given out again when it goes.
CREATE TRIGGER newest_certificate_forgotten AFTER DELETE ON certificate
WHEN NOT EXISTS (SELECT 1 FROM certificate WHERE position > OLD.position) BEGIN
  UPDATE search_progress SET upto = min(upto, OLD.position - 1) WHERE list = 'certificate';
  DELETE FROM search_zone WHERE kind LIKE 'certificate.%' AND last >= OLD.position;
END;
`;
