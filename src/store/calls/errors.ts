import { EstuaryError, failed, unavailable } from '../../errors.ts';

/** Converts an error to an EstuaryError; driver-specific errors were converted before. */
export function toStoreError(error: unknown): EstuaryError {
  if (error instanceof EstuaryError) return error;
  if (error instanceof Error && 'syscall' in error)
    return unavailable('AUDIT_UNAVAILABLE', 'the audit log cannot be written', {
      detail: error.message,
      cause: error,
    });
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return failed('STORE_FAILED', 'the store failed', { detail, cause: error });
}

/** The store is temporarily unavailable. @param detail for the log */
export const storeUnavailable = (detail: string, cause?: unknown): EstuaryError =>
  unavailable('STORE_UNAVAILABLE', 'the store is unavailable', { detail, cause });

/** Code that has effects was called with something that is only simulated. */
export const dryRunEffect = (): EstuaryError => failed('DRY_RUN', 'A dry run must not have effects.');

/** Each write of a store that was opened to be read. */
export const readOnly = (): Promise<never> => Promise.reject(dryRunEffect());

/** The store or its content is broken. @param detail for the log */
export const storeFailed = (detail: string, cause?: unknown): EstuaryError =>
  failed('STORE_FAILED', 'the store failed', { detail, cause });

/** This node may no longer work on what it began. @param detail for the log */
export const leaseLost = (detail: string, cause?: unknown): EstuaryError =>
  unavailable('NODE_LEASE_LOST', 'the store is unavailable', { detail, cause });

/**
 * 503: the connection to the store was lost. A call in progress may have taken effect; the caller must check or undo
 * it.
 */
export class StoreLost extends EstuaryError {
  /** @param detail for the log */
  constructor(detail: string) {
    super(503, 'STORE_UNAVAILABLE', 'the store is unavailable', { detail, retryAfter: 1 });
  }
}

/** The first schema version of Estuary 0.2. A database of 0.1 has a lower one. */
export const FIRST_VERSION = 100;

/** @param detail for the log: the database and its version */
export const tooOld = (detail: string): EstuaryError =>
  failed(
    'STORE_TOO_OLD',
    'Estuary 0.1 created the database, and this version cannot read it. Start with a new store, and import the certificates with "estuary admin cert import"; the last version that reads this database is 0.1.x.',
    { detail },
  );

/** @param detail for the log: the database, its version, and this program's */
export const tooNew = (detail: string): EstuaryError =>
  failed('STORE_TOO_NEW', 'a newer version of Estuary created the database', { detail });
