/** `audit verify` of a SQLite store: whether nothing of the audit log was changed or taken out. */
import Database from 'better-sqlite3';
import { Broken, type StoredHead, type StoredRecord } from './broken.ts';
import { attempts, badlyKept, ChainCheck, type AuditVerdict, type ChainOptions, type Whole } from './chain-check.ts';
import { FileCursor } from './file-cursor.ts';

export interface VerifyOptions extends ChainOptions {
  readonly storePath: string;
  readonly auditFile: string;
}

/**
 * Verifies the audit log: the chain in the store, the chain in the file, and that both say the same. Reads only, and
 * works while a server runs. It blocks its thread while it reads: for a command, not for the server.
 *
 * @throws when the database cannot be opened or is none of Estuary's
 */
export async function verifyAudit(options: VerifyOptions): Promise<AuditVerdict> {
  const db = new Database(options.storePath, { readonly: true, fileMustExist: true, timeout: 5000 });
  try {
    return (await badlyKept(options)) ?? (await attempts(() => verifyOnce(db, options)));
  } finally {
    db.close();
  }
}

async function verifyOnce(db: Database.Database, options: VerifyOptions): Promise<Whole> {
  // One read transaction: the records and the head of one moment.
  const [check, verdict] = db.transaction(() => verifySnapshot(db, options))();
  return check.sealed(verdict);
}

function verifySnapshot(db: Database.Database, options: VerifyOptions): readonly [ChainCheck, Whole] {
  const stored = db.prepare<[], StoredHead>('SELECT seq, hash, file_start, file_size FROM audit_head').get();
  if (stored === undefined) throw new Broken(null, 'the store has lost the end of the audit chain');
  const file = new FileCursor(options.auditFile, stored);
  try {
    const columns = 'SELECT seq, time, type, line FROM audit';
    const first = db.prepare<[], StoredRecord>(`${columns} ORDER BY seq LIMIT 1`).get();
    const newest = `${columns} WHERE type = 'audit.archived' ORDER BY seq DESC LIMIT 1`;
    const archived = db.prepare<[], StoredRecord>(newest).get();
    const check = new ChainCheck(stored, { first, archived }, file, options);
    for (const row of db.prepare<[], StoredRecord>(`${columns} ORDER BY seq`).iterate()) check.pass(row);
    return [check, check.end()];
  } finally {
    file.close();
  }
}
