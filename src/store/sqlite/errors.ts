import Database from 'better-sqlite3';
import { EstuaryError, failed, unavailable } from '../../errors.ts';

/** SQLite's result codes that may pass without a change to the program or its data. */
const PASSING = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PERM|AUTH|PROTOCOL)/;

const WRITE_FAILED = 'the store cannot be used at present';

/** What went wrong in the store's thread, as the one error family. The reason goes into the private detail. */
export function toEstuaryError(error: unknown): EstuaryError {
  if (error instanceof EstuaryError) return error;
  if (error instanceof Database.SqliteError) {
    const options = { detail: `${error.code}: ${error.message}`, cause: error };
    return PASSING.test(error.code)
      ? unavailable('STORE_UNAVAILABLE', WRITE_FAILED, options)
      : failed('STORE_FAILED', 'the store failed', options);
  }
  if (error instanceof Error && 'syscall' in error)
    return unavailable('AUDIT_UNAVAILABLE', 'the audit log cannot be written at present', {
      detail: error.message,
      cause: error,
    });
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return failed('STORE_FAILED', 'the store failed', { detail, cause: error });
}
