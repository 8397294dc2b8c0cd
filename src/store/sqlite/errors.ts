import Database from 'better-sqlite3';
import type { EstuaryError } from '../../errors.ts';
import { storeFailed, storeUnavailable, toStoreError } from '../calls/errors.ts';

/** Temporary SQLite result codes. */
const PASSING = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PERM|AUTH|PROTOCOL)/;

/** Converts an error to an EstuaryError. The reason goes into the private detail. */
export function toEstuaryError(error: unknown): EstuaryError {
  if (!(error instanceof Database.SqliteError)) return toStoreError(error);
  const detail = `${error.code}: ${error.message}`;
  return PASSING.test(error.code) ? storeUnavailable(detail, error) : storeFailed(detail, error);
}
