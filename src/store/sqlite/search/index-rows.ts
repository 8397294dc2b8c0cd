/**
 * Fills the search indexes of certificates and audit records after the rows: name substrings, time blocks, record
 * indexes.
 */
import type { Db } from '../database.ts';
import { fold } from '../../page.ts';
import { auditField } from '../schema.ts';

/** Certificates and audit records per call: some milliseconds without other writes. */
const CERTIFICATES = 100;
const RECORDS = 1000;
/** Rows per block of `search_zone`. */
export const ZONE = { certificate: 1024, audit: 4096 } as const;

type ListName = keyof typeof ZONE;

/** How far each list is indexed. */
export function searchProgress(db: Db): (list: ListName) => number {
  const upto = db.prepare<[string], { upto: number }>('SELECT upto FROM search_progress WHERE list = ?');
  return (list) => upto.get(list)?.upto ?? 0;
}

export function searchIndexReads(db: Db) {
  const behind = db.prepare<[], { behind: number }>(
    `SELECT EXISTS (SELECT 1 FROM certificate WHERE position > (SELECT upto FROM search_progress WHERE list = 'certificate'))
     OR EXISTS (SELECT 1 FROM audit WHERE seq > (SELECT upto FROM search_progress WHERE list = 'audit')) AS behind`,
  );
  return { isSearchBehind: (): boolean => behind.get()?.behind === 1 };
}

/** Indexes the next certificates and records; returns whether there are more. */
export function searchIndexWrites(db: Db): () => boolean {
  const progress = searchProgress(db);
  const advance = db.prepare<[number, string]>('UPDATE search_progress SET upto = ? WHERE list = ?');
  const certificates = db.prepare<[number], { place: number; subject: string; sans: string }>(
    `SELECT position AS place, subject_folded AS subject, sans FROM certificate WHERE position > ? ORDER BY position LIMIT ${CERTIFICATES}`,
  );
  const addCertificate = db.prepare<[number, string, string]>(
    'INSERT INTO certificate_names (rowid, subject, sans) VALUES (?, ?, ?)',
  );
  const records = db.prepare<[number], { place: number; subject: string | null }>(
    `SELECT seq AS place, ${auditField('subject')} AS subject FROM audit WHERE seq > ? ORDER BY seq LIMIT ${RECORDS}`,
  );
  const addRecords = db.prepare<[number, number]>(
    'UPDATE audit SET indexed = 1 WHERE seq > ? AND seq <= ? AND indexed = 0',
  );
  const addSubject = db.prepare<[string]>('INSERT INTO audit_subject (subject) VALUES (?) ON CONFLICT DO NOTHING');
  const addSubjectName = db.prepare<[number | bigint, string]>(
    'INSERT INTO audit_subject_names (rowid, subject) VALUES (?, ?)',
  );
  const zones: Readonly<Record<ListName, ReturnType<Db['prepare']>[]>> = {
    certificate: [
      zone(db, 'certificate.end', 'certificate', 'position', 'not_after'),
      zone(db, 'certificate.issue', 'certificate', 'position', 'coalesce(issued_at, not_before)'),
    ],
    audit: [zone(db, 'audit.time', 'audit', 'seq', 'time')],
  };

  /** Records a list's progress and closes completed blocks. */
  const settle = (list: ListName, before: number, upto: number): void => {
    const size = ZONE[list];
    for (let first = before - (before % size) + 1; first + size - 1 <= upto; first += size)
      for (const add of zones[list]) add.run({ first, last: first + size - 1 });
    advance.run(upto, list);
  };

  return () => {
    const from = { certificate: progress('certificate'), audit: progress('audit') };
    const issued = certificates.all(from.certificate);
    for (const { place, subject, sans } of issued) addCertificate.run(place, subject, fold(namesOf(sans)));
    settle('certificate', from.certificate, issued.at(-1)?.place ?? from.certificate);

    const audited = records.all(from.audit);
    for (const subject of new Set(audited.map((record) => record.subject))) {
      if (subject === null) continue;
      const { changes, lastInsertRowid } = addSubject.run(subject);
      if (changes === 1) addSubjectName.run(lastInsertRowid, fold(subject));
    }
    const last = audited.at(-1)?.place ?? from.audit;
    addRecords.run(from.audit, last);
    settle('audit', from.audit, last);
    return issued.length === CERTIFICATES || audited.length === RECORDS;
  };
}

/** A substring never spans two names: it contains no line feed. */
function namesOf(sans: string): string {
  const names: unknown = JSON.parse(sans);
  return Array.isArray(names) ? names.join('\n') : '';
}

function zone(db: Db, kind: string, table: string, place: string, value: string): ReturnType<Db['prepare']> {
  return db.prepare(
    `INSERT OR REPLACE INTO search_zone SELECT '${kind}', @first, @last, low, high
     FROM (SELECT min(${value}) AS low, max(${value}) AS high FROM ${table} WHERE ${place} BETWEEN @first AND @last)
     WHERE low IS NOT NULL`,
  );
}
