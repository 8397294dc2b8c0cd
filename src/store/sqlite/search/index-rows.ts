/**
 * Fills the search indexes of certificates and audit records after the rows: name substrings, time blocks, record
 * indexes.
 */
import type { Db } from '../database.ts';
import { fold } from '../../page.ts';
import { auditField } from '../schema.ts';
import { Statements } from '../statements.ts';
import { quickRead } from '../../operation.ts';
import { result } from '../../port.ts';

/** Certificates and audit records per call: some milliseconds without other writes. */
const CERTIFICATES = 100;
const RECORDS = 1000;
/** Rows per block of `search_zone`. */
export const ZONE = { certificate: 1024, audit: 4096 } as const;

type ListName = keyof typeof ZONE;

/** How far each list is indexed. */
export function searchProgress(db: Db): (list: ListName) => number {
  const statements = new Statements(db);
  return (list) => statements.get<{ upto: number }>`SELECT upto FROM search_progress WHERE list = ${list}`?.upto ?? 0;
}

export function searchIndexReads(db: Db) {
  const statements = new Statements(db);
  return {
    isSearchBehind: quickRead(() => {
      const row = statements.get<{ behind: number }>`SELECT
        EXISTS (SELECT 1 FROM certificate WHERE position > (SELECT upto FROM search_progress WHERE list = 'certificate'))
        OR EXISTS (SELECT 1 FROM audit WHERE seq > (SELECT upto FROM search_progress WHERE list = 'audit')) AS behind`;
      return result(row?.behind === 1);
    }),
  };
}

const RECORDS_AFTER = `SELECT seq AS place, ${auditField('subject')} AS subject FROM audit WHERE seq > ? ORDER BY seq LIMIT ${RECORDS}`;

/** What closes a block of a list. */
const ZONES: Readonly<Record<ListName, readonly string[]>> = {
  certificate: [
    zone('certificate.end', 'certificate', 'position', 'not_after'),
    zone('certificate.issue', 'certificate', 'position', 'coalesce(issued_at, not_before)'),
  ],
  audit: [zone('audit.time', 'audit', 'seq', 'time')],
};

/** Indexes the next certificates and records; returns whether there are more. */
export function searchIndexWrites(db: Db): () => boolean {
  const progress = searchProgress(db);
  const statements = new Statements(db);

  /** Records a list's progress and closes completed blocks. */
  const settle = (list: ListName, before: number, upto: number): void => {
    const size = ZONE[list];
    for (let first = before - (before % size) + 1; first + size - 1 <= upto; first += size)
      for (const add of ZONES[list]) statements.run(add, { first, last: first + size - 1 });
    statements.run`UPDATE search_progress SET upto = ${upto} WHERE list = ${list}`;
  };

  return () => {
    const from = { certificate: progress('certificate'), audit: progress('audit') };
    const issued = statements.all<{ place: number; subject: string; sans: string }>`SELECT position AS place,
      subject_folded AS subject, sans FROM certificate WHERE position > ${from.certificate} ORDER BY position
      LIMIT ${CERTIFICATES}`;
    for (const { place, subject, sans } of issued)
      statements.run`INSERT INTO certificate_names (rowid, subject, sans) VALUES (${place}, ${subject}, ${fold(namesOf(sans))})`;
    settle('certificate', from.certificate, issued.at(-1)?.place ?? from.certificate);

    const audited = statements.all<{ place: number; subject: string | null }>(RECORDS_AFTER, from.audit);
    for (const subject of new Set(audited.map((record) => record.subject))) {
      if (subject === null) continue;
      const added = statements.get<{ id: number }>`INSERT INTO audit_subject (subject) VALUES (${subject})
        ON CONFLICT DO NOTHING RETURNING id`;
      if (added !== undefined)
        statements.run`INSERT INTO audit_subject_names (rowid, subject) VALUES (${added.id}, ${fold(subject)})`;
    }
    const last = audited.at(-1)?.place ?? from.audit;
    statements.run`UPDATE audit SET indexed = 1 WHERE seq > ${from.audit} AND seq <= ${last} AND indexed = 0`;
    settle('audit', from.audit, last);
    return issued.length === CERTIFICATES || audited.length === RECORDS;
  };
}

/** A substring never spans two names: it contains no line feed. */
function namesOf(sans: string): string {
  const names: unknown = JSON.parse(sans);
  return Array.isArray(names) ? names.join('\n') : '';
}

function zone(kind: string, table: string, place: string, value: string): string {
  return `INSERT OR REPLACE INTO search_zone SELECT '${kind}', @first, @last, low, high
    FROM (SELECT min(${value}) AS low, max(${value}) AS high FROM ${table} WHERE ${place} BETWEEN @first AND @last)
    WHERE low IS NOT NULL`;
}
