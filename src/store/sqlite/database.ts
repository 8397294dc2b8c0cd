import Database from 'better-sqlite3';
import { accessSync, closeSync, constants, existsSync, openSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { refuseBehind, refuseOtherEnd } from '../../audit/missing-records.ts';
import { GENESIS_HASH, type StoredHead } from '../../audit/record.ts';
import { codeOf, describe, failed, unavailable, type EstuaryError } from '../../errors.ts';
import { makeFolder } from '../../folders.ts';
import { FIRST_VERSION, tooNew, tooOld, storeFailed, storeUnavailable, toStoreError } from '../calls/errors.ts';
import { fold } from '../page.ts';
import { MIGRATIONS } from './schema.ts';

export type Db = Database.Database;

/** "ESTU": identifies Estuary's databases. */
const APPLICATION_ID = 0x45535455;
/** Milliseconds to wait for another process's transaction. */
const BUSY_TIMEOUT = 5000;
/** Bytes that the write-ahead log keeps on disk after a long reader (such as `audit verify`) let it grow. */
const WAL_KEPT = 64 << 20;

/** Opens the database for writing; creates or migrates it. */
export function openWritable(path: string, migrations: readonly string[] = MIGRATIONS): Db {
  createFile(path);
  // SQLite has its other files next to the real one.
  const db = open(realpathSync(path), {});
  try {
    refuseForeign(db, path);
    refuseDamaged(db, path);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    db.pragma('temp_store = MEMORY');
    db.pragma(`journal_size_limit = ${WAL_KEPT}`);
    migrate(db, path, migrations);
  } catch (error) {
    db.close();
    throw error instanceof Database.SqliteError ? toEstuaryError(error, path) : error;
  }
  return db;
}

/**
 * Finds what would keep a server from opening its database and audit file, without changes. A database that does not exist is created.
 * @throws EstuaryError
 */
export function refuseUnusable(path: string, auditFile: string): void {
  let head: StoredHead = { seq: 0, hash: GENESIS_HASH, file_start: 1, file_size: 0 };
  if (existsSync(path)) {
    refuseHardLinks(path);
    const db = openReadOnly(path);
    try {
      refuseDamaged(db, path);
      const version = refuseOtherVersion(db, path, latestOf(MIGRATIONS));
      if (version > 0) head = db.prepare<[], StoredHead>('SELECT * FROM audit_head').get() ?? head;
    } catch (error) {
      throw toEstuaryError(error, path);
    } finally {
      db.close();
    }
  }
  if (!existsSync(auditFile)) return;
  refuseBehind(auditFile, head);
  refuseOtherEnd(auditFile, head);
}

/** @throws EstuaryError 500 `STORE_HARD_LINKS` */
export function refuseHardLinks(path: string, { nlink } = statSync(path)): void {
  if (nlink > 1)
    throw failed('STORE_HARD_LINKS', 'the database has several names', {
      detail: `${path} has ${nlink} hard links; remove the others`,
    });
}

/** Opens a running service's database, for one of its threads. */
export const openExisting = (path: string): Db => open(path, { fileMustExist: true });

/**
 * Opens an existing database read-only.
 * @throws EstuaryError if it cannot be read, or is not Estuary's
 */
export function openReadOnly(path: string): Db {
  refuseMissing(path);
  const db = open(path, { readonly: true, fileMustExist: true });
  try {
    refuseForeign(db, path);
    return db;
  } catch (error) {
    db.close();
    throw error instanceof Database.SqliteError ? toEstuaryError(error, path) : error;
  }
}

/** @throws EstuaryError 503 `STORE_UNAVAILABLE` if the database does not exist or cannot be read */
export function refuseMissing(path: string): void {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    const missing = `${path} does not exist. Correct store.path, or restore a backup with "estuary restore"`;
    const detail = codeOf(error) === 'ENOENT' ? missing : describe(error);
    throw unavailable('STORE_UNAVAILABLE', 'the database cannot be opened', { detail, cause: error });
  }
}

function open(path: string, options: Database.Options): Db {
  try {
    const db = new Database(path, { timeout: BUSY_TIMEOUT, ...options });
    addFunctions(db);
    return db;
  } catch (error) {
    throw error instanceof Database.SqliteError ? toEstuaryError(error, path) : error;
  }
}

/** Adds the SQL function that searches compare texts with. */
export function addFunctions(db: Db): void {
  db.function('estuary_fold', { deterministic: true }, fold);
}

function createFile(path: string): void {
  try {
    makeFolder(dirname(path));
    // SQLite would make it world-readable; its -wal and -shm files get the mode of the database.
    closeSync(openSync(path, 'a', 0o600));
  } catch (error) {
    throw unavailable('STORE_UNAVAILABLE', 'the database cannot be opened', { detail: describe(error), cause: error });
  }
}

function pragmaNumber(db: Db, name: string): number {
  const value: unknown = db.pragma(name, { simple: true });
  if (typeof value !== 'number') throw new Error(`PRAGMA ${name} gave no number`);
  return value;
}

function refuseForeign(db: Db, path: string): void {
  // One snapshot: another process may be creating the database.
  const look = db.transaction(() => ({
    id: pragmaNumber(db, 'application_id'),
    tables: db.prepare<[], { n: number }>('SELECT count(*) AS n FROM sqlite_schema').get()?.n ?? 0,
  }));
  const { id, tables } = look();
  if (id === APPLICATION_ID || (id === 0 && tables === 0)) return;
  throw failed('STORE_FOREIGN', 'Estuary did not create the database', {
    detail: `${path}. Name another file in store.path`,
  });
}

/** Bytes of the largest database that each start checks as a whole, within a second. `doctor` checks larger ones. */
const CHECKED_AS_A_WHOLE = 128 << 20;

function refuseDamaged(db: Db, path: string): void {
  if (statSync(path).size > CHECKED_AS_A_WHOLE) return;
  const damage = damageOf(db);
  if (damage !== undefined) throw storeFailed(`${path}: ${damage.replaceAll('\n', ' ')}${RESTORE}`);
}

/** The first damage that SQLite finds in the whole database, in its words; undefined: none. @throws SqliteError */
export function damageOf(db: Db): string | undefined {
  // One snapshot: another process may be creating tables.
  const check = db.transaction(() => {
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return String(db.pragma('quick_check(1)', { simple: true }));
  });
  const found = check();
  return found === 'ok' ? undefined : found;
}

const latestOf = (migrations: readonly string[]): number => FIRST_VERSION + migrations.length - 1;

/** @returns the version of the schema; 0: none yet */
function refuseOtherVersion(db: Db, path: string, latest: number): number {
  const version = pragmaNumber(db, 'user_version');
  const detail = `${path} has schema version ${version}, this program knows ${latest}`;
  if (version > 0 && version < FIRST_VERSION) throw tooOld(detail);
  if (version > latest) throw tooNew(`${detail}. Install that version, or restore a backup from before the upgrade`);
  return version;
}

function migrate(db: Db, path: string, migrations: readonly string[]): void {
  // Under the write lock from reading the version on, because several processes may start concurrently.
  const step = db.transaction((): boolean => {
    const version = refuseOtherVersion(db, path, latestOf(migrations));
    const next = version === 0 ? FIRST_VERSION : version + 1;
    const script = migrations[next - FIRST_VERSION];
    if (script === undefined) return false;
    db.exec(script);
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma(`user_version = ${next}`);
    return true;
  });
  // Each migration has its own transaction.
  while (step.immediate());
}

/** Temporary SQLite result codes. */
const PASSING = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PERM|AUTH|PROTOCOL)/;

const RESTORE = '. Restore a backup with "estuary restore"';

/** The file is damaged, or no database at all. */
export const isDamage = (error: unknown): boolean => /^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error));

/** Converts an error to an EstuaryError. The reason goes into the private detail. @param path of the database */
export function toEstuaryError(error: unknown, path?: string): EstuaryError {
  if (!(error instanceof Database.SqliteError)) return toStoreError(error);
  const place = path === undefined ? '' : `${path}: `;
  const advice = isDamage(error) ? RESTORE : '';
  const detail = `${place}${error.code}: ${error.message}${advice}`;
  return PASSING.test(error.code) ? storeUnavailable(detail, error) : storeFailed(detail, error);
}
