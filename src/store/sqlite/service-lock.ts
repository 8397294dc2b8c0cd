/**
 * One service per store. The lock is the operating system's, on a file next to the database. It ends with the process
 * that holds it, so a leftover file has no effect.
 *
 * The file is an empty SQLite database, because Node has no other access to such locks: the service holds the write
 * lock (RESERVED) while it runs, and never writes.
 */
import Database from 'better-sqlite3';
import { closeSync, openSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { codeOf, describe, failed, unavailable, type EstuaryError } from '../../errors.ts';
import { makeFolder } from '../../folders.ts';
import { toEstuaryError } from './database.ts';

export interface ServiceLock {
  release(): void;
}

/**
 * Takes the store for this service, before anything is read or written. The database need not exist yet.
 * @param storePath the database's path
 * @throws EstuaryError 500 `STORE_IN_USE` with the holder's host and process ID in its detail; 503 `STORE_UNAVAILABLE`
 * if the lock file is unusable
 */
export function lockStore(storePath: string): ServiceLock {
  const paths = pathsFor(storePath);
  const db = openLock(paths.lock);
  try {
    if (!took(db)) throw inUse(paths);
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

interface LockPaths {
  readonly store: string;
  readonly lock: string;
  readonly owner: string;
}

/** Next to the actual database, whatever path was used. */
function pathsFor(storePath: string): LockPaths {
  try {
    makeFolder(dirname(storePath));
    const store = realPath(storePath);
    return { store, lock: `${store}.lock`, owner: `${store}.owner` };
  } catch (error) {
    throw unavailable('STORE_UNAVAILABLE', 'the database cannot be opened', { detail: describe(error), cause: error });
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
    throw unavailable('STORE_UNAVAILABLE', 'the lock of the store cannot be used', {
      detail: `${path}: ${describe(error)}`,
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

function inUse({ store, owner }: LockPaths): EstuaryError {
  return failed('STORE_IN_USE', 'the store is in use by another service', {
    detail: `${readOwner(owner)} has ${store}`,
  });
}

function readOwner(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim() || 'an unknown process';
  } catch {
    return 'an unknown process';
  }
}
