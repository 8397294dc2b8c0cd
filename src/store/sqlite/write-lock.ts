import Database from 'better-sqlite3';
import type { Db } from './database.ts';

/** Milliseconds to wait for the transaction of another process. */
const TIMEOUT = 5000;
/** Milliseconds between two tries: a transaction takes about as long. */
const PAUSE = 1;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/**
 * Makes the statement that begins a transaction with the write lock. Waits for another process's transaction by short
 * pauses: SQLite's own waiting backs off to 100 ms, and one of several busy processes then starves for seconds.
 *
 * @throws SqliteError `SQLITE_BUSY` after five seconds
 */
export function writeLock(db: Db): () => void {
  db.pragma('busy_timeout = 0');
  const begin = db.prepare('BEGIN IMMEDIATE');
  return () => {
    for (const deadline = performance.now() + TIMEOUT; ;) {
      try {
        begin.run();
        return;
      } catch (error) {
        const busy = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
        if (!busy || performance.now() > deadline) throw error;
        // This thread has nothing else to do: everything that waits goes into the transaction to come.
        Atomics.wait(sleeper, 0, 0, PAUSE * (0.5 + Math.random()));
      }
    }
  };
}
