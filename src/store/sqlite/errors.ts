import Database from 'better-sqlite3';
import type { EstuaryError } from '../../errors.ts';
import { storeFailed, storeUnavailable, toStoreError } from '../calls/errors.ts';

/** SQLite's result codes that may pass without a change to the program or its data. */
const PASSING = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PERM|AUTH|PROTOCOL)/;

/** What went wrong in the store's thread, as the one error family. The reason goes into the private detail. */
export function toEstuaryError(error: unknown): EstuaryError {
  if (!(error instanceof Database.SqliteError)) return toStoreError(error);
  const detail = `${error.code}: ${error.message}`;
  return PASSING.test(error.code) ? storeUnavailable(detail, error) : storeFailed(detail, error);
}
