/** The messages between the store's proxy and its threads. Plain objects only, for the structured clone. */
import { EstuaryError, type ErrorCode, type ErrorStatus } from '../../errors.ts';
import type { LookupKeyOptions } from './token-lookups.ts';

/** What the worker thread gets as `workerData`. */
export interface WorkerOptions {
  readonly role: 'writer' | 'reader';
  readonly path: string;
  readonly audit_file: string;
  /** In every audit record. */
  readonly node: string | undefined;
  /** Of the writer. */
  readonly lookup_key: LookupKeyOptions;
  /** Of the writer: no other process writes, and it is to tell what is revoked. */
  readonly tells_revocations: boolean;
  /** Milliseconds since the epoch, for records about what start-up finds. */
  readonly time: number;
}

export function isWorkerOptions(value: unknown): value is WorkerOptions {
  return typeof value === 'object' && value !== null && 'role' in value && 'path' in value && 'audit_file' in value;
}

export interface Call {
  readonly id: number;
  readonly operation: string;
  /** Typed where the call is made and where the operation is; the message in between cannot be. */
  readonly args: readonly never[];
  /** When it was made: the time of its audit records, ms. */
  readonly time: number;
}

/** Main thread to worker. */
export type Request = { readonly calls: readonly Call[] } | { readonly close: true };

export interface PlainError {
  readonly status: ErrorStatus;
  readonly code: ErrorCode;
  readonly message: string;
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;
}

export type Reply =
  | { readonly id: number; readonly value: unknown; readonly error?: undefined }
  | { readonly id: number; readonly error: PlainError };

/** Worker to main thread: at first one `ready`, with the names of the operations, or `failed`; then replies. */
export type Response =
  | { readonly ready: readonly string[]; /** Serials. */ readonly revoked?: readonly string[] | undefined }
  | { readonly failed: PlainError }
  | { readonly replies: readonly Reply[]; readonly revoked?: readonly string[] | undefined };

export function toPlainError(error: EstuaryError): PlainError {
  const { status, code, message, detail, retryAfter } = error;
  return { status, code, message, detail, retryAfter };
}

export function fromPlainError(error: PlainError): EstuaryError {
  return new EstuaryError(error.status, error.code, error.message, {
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
  });
}
