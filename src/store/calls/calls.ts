/** The messages between the main thread and a thread that has the database open: plain objects, passed as structured clones (thread-link.ts). */
import { EstuaryError, type ErrorCode, type ErrorStatus } from '../../errors.ts';
import { StoreLost } from './errors.ts';

export interface Call {
  readonly id: number;
  readonly operation: string;
  /** Typed where the call is made and where the operation is; the message in between cannot be. */
  readonly args: readonly never[];
  /** When it was made: the time of its audit records, ms. */
  readonly time: number;
}

/** Main thread to store thread. */
export type Request =
  | { readonly calls: readonly Call[] }
  /** The last message: the thread answers earlier calls, and ends. */
  | { readonly close: true };

export interface PlainError {
  readonly status: ErrorStatus;
  readonly code: ErrorCode;
  readonly message: string;
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;
  /** {@link StoreLost}: whether the call happened is not known. */
  readonly lost?: true;
}

export type Reply =
  | { readonly id: number; readonly value: unknown; readonly error?: undefined }
  | { readonly id: number; readonly error: PlainError };

/** Store thread to main thread: first one `ready`, with the names of the operations, or `failed`. `revoked` lists serial numbers. */
export type Response =
  | { readonly ready: readonly string[]; readonly revoked?: readonly string[] | undefined }
  | { readonly failed: PlainError }
  | { readonly replies: readonly Reply[]; readonly revoked?: readonly string[] | undefined };

export function toPlainError(error: EstuaryError): PlainError {
  const { status, code, message, detail, retryAfter } = error;
  return { status, code, message, detail, retryAfter, ...(error instanceof StoreLost ? { lost: true } : {}) };
}

export function fromPlainError(error: PlainError): EstuaryError {
  if (error.lost === true) return new StoreLost(error.detail ?? error.message);
  return new EstuaryError(error.status, error.code, error.message, {
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
  });
}
