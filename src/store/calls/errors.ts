import { EstuaryError, failed, unavailable } from '../../errors.ts';

/** What went wrong where the database is, as the one error family; errors of a driver's library it has told apart before. */
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

/** The store does not take this at present. @param detail for the log */
export const storeUnavailable = (detail: string, cause?: unknown): EstuaryError =>
  unavailable('STORE_UNAVAILABLE', 'the store is unavailable', { detail, cause });

/** The store, or what is in it, is broken. @param detail for the log */
export const storeFailed = (detail: string, cause?: unknown): EstuaryError =>
  failed('STORE_FAILED', 'the store failed', { detail, cause });

/**
 * 503: the store went away over the call, or is away. Whether a call that was under way happened is not known; whoever calls has to find
 * out, or to take it back.
 */
export class StoreLost extends EstuaryError {
  /** @param detail for the log */
  constructor(detail: string) {
    super(503, 'STORE_UNAVAILABLE', 'the store is unavailable', { detail, retryAfter: 1 });
  }
}
