/** Reads the audit records of a SQLite store for a command, even while a server runs. Reads block the thread. */
import {
  attempts,
  type AuditVerdict,
  unsignedCheckpoint,
  ChainCheck,
  type ChainOptions,
  type Whole,
} from '../../audit/chain-check.ts';
import { FileCursor } from '../../audit/file-cursor.ts';
import { Broken, changedSearch, type StoredHead, type StoredLine } from '../../audit/record.ts';
import type { StoredRecord, TimeRange } from '../../audit/record.ts';
import { describe } from '../../errors.ts';
import { fold } from '../page.ts';
import { type Db, openReadOnly } from './database.ts';
import { auditField, INDEXED_FIELDS } from './schema.ts';
import { trigramsOf } from './search/trigrams.ts';

/** Records per read. Short reads let a running server shorten its write-ahead log. */
const ROWS = 2000;

/** Reads the records in chain order. @throws if the database cannot be opened or is not Estuary's */
export function* storedLines(storePath: string, { since = 0, until = Number.MAX_SAFE_INTEGER }: TimeRange = {}) {
  const db = openReadOnly(storePath);
  try {
    const next = db.prepare<[number], StoredLine & { time: number }>(
      `SELECT seq, time, line FROM audit WHERE seq > ? ORDER BY seq LIMIT ${ROWS}`,
    );
    let after = 0;
    for (let rows = next.all(after); rows.length > 0; rows = next.all(after)) {
      for (const { seq, time, line } of rows) {
        after = seq;
        if (time >= since && time <= until) yield { seq, line } satisfies StoredLine;
      }
    }
  } finally {
    db.close();
  }
}

export interface VerifyOptions extends ChainOptions {
  readonly storePath: string;
  readonly auditFile: string;
}

/**
 * Verifies the chains in the store and in the file, that both have the same records, and that searches find them.
 * @throws if the database cannot be opened or is not Estuary's
 */
export async function verifyAudit(options: VerifyOptions): Promise<AuditVerdict> {
  const db = openReadOnly(options.storePath);
  try {
    return (await unsignedCheckpoint(options)) ?? (await attempts(() => verifyOnce(db, options)));
  } finally {
    db.close();
  }
}

async function verifyOnce(db: Db, options: VerifyOptions): Promise<Whole> {
  // One read transaction: a consistent snapshot of records and head.
  const [check, verdict] = db.transaction(() => verifySnapshot(db, options))();
  return check.sealed(verdict);
}

interface SearchedRecord extends StoredRecord {
  /** The subject, if a substring search finds it. */
  readonly subject: string | null;
  /** The part of the record that a search would miss. */
  readonly changed: string | null;
}

/** The block of `search_zone` in which a search by time looks for a record. */
const ZONE = `SELECT time BETWEEN low AND high AND seq <= last FROM search_zone
  WHERE kind = 'audit.time' AND first <= seq ORDER BY first DESC LIMIT 1`;
const INDEXED = "seq <= (SELECT upto FROM search_progress WHERE list = 'audit')";
const SEARCHED = `SELECT seq, time, type, line, iif(${INDEXED}, ${auditField('subject')}, NULL) AS subject, CASE
    WHEN indexed <> 1 AND ${INDEXED} THEN 'indexed'
    WHEN seq <= (SELECT max(last) FROM search_zone WHERE kind = 'audit.time') AND (${ZONE}) IS NOT 1 THEN 'time'
  END AS changed FROM audit ORDER BY seq`;

function verifySnapshot(db: Db, options: VerifyOptions): readonly [ChainCheck, Whole] {
  const stored = db.prepare<[], StoredHead>('SELECT seq, hash, file_start, file_size FROM audit_head').get();
  if (stored === undefined) throw new Broken(null, 'the store has lost the end of the audit chain');
  const file = new FileCursor(options.auditFile, stored);
  try {
    const columns = 'SELECT seq, time, type, line FROM audit';
    const first = db.prepare<[], StoredRecord>(`${columns} ORDER BY seq LIMIT 1`).get();
    const newest = `${columns} WHERE type = 'audit.archived' ORDER BY seq DESC LIMIT 1`;
    const archived = db.prepare<[], StoredRecord>(newest).get();
    const check = new ChainCheck(stored, { first, archived }, file, options);
    checkIndexes(db);
    const subjects = findableSubjects(db);
    for (const row of db.prepare<[], SearchedRecord>(SEARCHED).iterate()) {
      check.pass(row);
      if (row.changed !== null) throw changedSearch(row.seq, row.changed);
      if (row.subject !== null && !subjects.has(row.subject)) throw changedSearch(row.seq, 'subject');
    }
    return [check, check.end()];
  } finally {
    file.close();
  }
}

/** SQLite refuses a search along an index that is missing or of something else. */
function checkIndexes(db: Db): void {
  for (const name of INDEXED_FIELDS)
    try {
      db.prepare(`SELECT seq FROM audit INDEXED BY audit_by_${name} WHERE indexed = 1 AND ${auditField(name)} = ?`);
    } catch (error) {
      throw new Broken(null, `the index of "${name}" in the store was changed or removed: ${describe(error)}`);
    }
}

/** The subjects that a substring search finds: those whose trigrams are all indexed. */
function findableSubjects(db: Db): ReadonlySet<string> {
  db.exec(
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.subject_trigram USING fts5vocab (main, 'audit_subject_names', 'instance')",
  );
  const indexed = new Map<number, number>();
  const entries = db.prepare<[], [string, number]>('SELECT term, doc FROM subject_trigram').raw();
  for (const [term, id] of entries.iterate()) indexed.set(id, (indexed.get(id) ?? 0) + numberOf(term));
  const subjects = db.prepare<[], { id: number; subject: string }>('SELECT id, subject FROM audit_subject').all();
  return new Set(subjects.flatMap(({ id, subject }) => ((indexed.get(id) ?? 0) === sumOf(subject) ? [subject] : [])));
}

/** FTS5 omits U+0000. */
function sumOf(subject: string): number {
  let sum = 0;
  for (const trigram of trigramsOf(fold(subject).replaceAll('\0', ''))) sum += numberOf(trigram);
  return sum;
}

/** A 32-bit number per trigram, so that a subject's trigrams are compared by their sum. */
function numberOf(trigram: string): number {
  let number = 0;
  for (let n = 0; n < trigram.length; n++) number = (number * 31 + trigram.charCodeAt(n)) >>> 0;
  return number;
}
