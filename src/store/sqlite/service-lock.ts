/**
 * One service per store and per audit file. The lock is the operating system's, on a file next to the database. It ends with the process
 * that holds it, so a leftover file has no effect.
 *
 * The file is an empty SQLite database, because Node has no other access to such locks: the service holds the write
 * lock (RESERVED) while it runs, and never writes.
 */
import Database from 'better-sqlite3';
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { codeOf, describe, failed, unavailable } from '../../errors.ts';
import { makeFolder } from '../../folders.ts';
import { refuseHardLinks, toEstuaryError } from './database.ts';

const IN_USE = 'the store is in use by another service';

export interface ServiceLock {
  release(): void;
}

/**
 * Takes the store for this service, before anything is read or written. The database need not exist yet.
 * @param storePath the database's path
 * @param place `as named`: a symbolic link is locked, not where it leads, because the link will be replaced
 * @throws EstuaryError 500 `STORE_IN_USE` with the holder's host and process ID in its detail; 500 `STORE_HARD_LINKS`;
 * 503 `STORE_UNAVAILABLE` if the lock file is unusable
 */
export function lockStore(storePath: string, place?: 'as named'): ServiceLock {
  const paths = pathsFor(storePath, place);
  const real = pathsFor(storePath);
  // Whoever uses the store locks what the link leads to. A lock file that is not there is not made.
  if (real.lock !== paths.lock && existsSync(real.lock)) requireFree(real);
  const found = (place === undefined ? statSync : lstatSync)(paths.file, { throwIfNoEntry: false });
  if (found !== undefined) refuseHardLinks(paths.file, found);
  return lock(paths, 'STORE_IN_USE', IN_USE);
}

/**
 * Takes the audit file for this service, as {@link lockStore}.
 * @throws EstuaryError 500 `AUDIT_IN_USE`; 503 `STORE_UNAVAILABLE` if the lock file is unusable
 */
export const lockAuditFile = (path: string): ServiceLock =>
  lock(pathsFor(path), 'AUDIT_IN_USE', 'the audit file is in use by another service');

function lock(paths: LockPaths, code: 'STORE_IN_USE' | 'AUDIT_IN_USE', message: string): ServiceLock {
  const db = openLock(paths.lock);
  try {
    if (!took(db)) throw failed(code, message, { detail: `${readOwner(paths.owner)} has ${paths.file}` });
  } catch (error) {
    db.close();
    throw toEstuaryError(error);
  }
  writeOwner(paths.owner);
  return {
    release() {
      if (!db.open) return;
      // First: the next holder writes its own.
      rmSync(paths.owner, { force: true });
      db.close();
    },
  };
}

/** @throws EstuaryError 500 `STORE_IN_USE`; a service of another user is not found */
function requireFree({ lock: path, owner, file }: LockPaths): void {
  let db: Database.Database;
  try {
    db = openLock(path);
  } catch {
    return;
  }
  try {
    if (!took(db)) throw failed('STORE_IN_USE', IN_USE, { detail: `${readOwner(owner)} has ${file}` });
  } finally {
    db.close();
  }
}

interface LockPaths {
  readonly file: string;
  readonly lock: string;
  readonly owner: string;
}

/** Next to the actual file, whatever path was used. */
function pathsFor(path: string, place?: 'as named'): LockPaths {
  try {
    makeFolder(dirname(path));
    const file = place === undefined ? realPath(path) : join(realpathSync(dirname(path)), basename(path));
    return { file, lock: `${file}.lock`, owner: `${file}.owner` };
  } catch (error) {
    throw unavailable('STORE_UNAVAILABLE', `${path} cannot be opened`, { detail: describe(error), cause: error });
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return join(realpathSync(dirname(path)), basename(path));
  }
}

function openLock(path: string): Database.Database {
  try {
    closeSync(openSync(path, 'a', 0o600));
    const db = new Database(path, { timeout: 0 });
    // Otherwise the write lock would leave an empty journal next to the file.
    db.pragma('journal_mode = MEMORY');
    return db;
  } catch (error) {
    const advice = ['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error))
      ? `. The user of the service must be able to write to ${dirname(path)}`
      : '';
    throw unavailable('STORE_UNAVAILABLE', 'the lock of the store or the audit file cannot be used', {
      detail: `${error instanceof Database.SqliteError ? `${path}: ` : ''}${describe(error)}${advice}`,
      cause: error,
    });
  }
}

/** False: another service has it. */
function took(db: Database.Database): boolean {
  try {
    db.exec('BEGIN IMMEDIATE');
    return true;
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return false;
    throw error;
  }
}

/** Only for the error message; the lock works without it, even on a full disk. */
function writeOwner(path: string): void {
  try {
    rmSync(path, { force: true });
    writeFileSync(path, `host ${hostname()}, pid ${process.pid}\n`, { mode: 0o600 });
  } catch {
    // The message then names no holder.
  }
}

function readOwner(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim() || 'an unknown process';
  } catch {
    return 'an unknown process';
  }
}
