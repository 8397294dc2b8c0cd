/**
 * The protocol between those who call the store and the thread or process that has the database. Plain objects only: between threads they
 * travel as structured clones (thread-link.ts), between processes packed in frames (frames.ts).
 */
import { EstuaryError, type ErrorCode, type ErrorStatus } from '../../errors.ts';
import { StoreLost } from '../store-lost.ts';

export interface Call {
  readonly id: number;
  readonly operation: string;
  /** Typed where the call is made and where the operation is; the message in between cannot be. */
  readonly args: readonly never[];
  /** When it was made: the time of its audit records, ms. */
  readonly time: number;
}

/** Who calls → who has the database. */
export type Request =
  /** The first: who it is. Calls follow `ready`. */
  | { readonly name: string }
  | { readonly calls: readonly Call[] }
  /** What was told to be revoked is known from here on. */
  | { readonly confirmed: number }
  /** The last: what was called before is answered, then it ends. */
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

/** Who has the database → who calls: at first one `ready`, with the names of the operations, or `failed`. */
export type Response =
  | { readonly ready: readonly string[]; /** Serials. */ readonly revoked?: readonly string[] | undefined }
  | { readonly failed: PlainError }
  | { readonly replies: readonly Reply[] }
  /** To all, before whoever revoked is answered. */
  | { readonly revoked: readonly string[]; readonly confirm: number }
  /** It is there, and has revoked nothing that it did not tell. */
  | { readonly alive: true };

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

function isCall(value: unknown): value is Call {
  if (!isObject(value)) return false;
  const { id, operation, args, time } = value;
  return typeof id === 'number' && typeof operation === 'string' && Array.isArray(args) && typeof time === 'number';
}

/** Whether a message of another process is a request; what is in the arguments, the operation finds out. */
export function isRequest(value: unknown): value is Request {
  if (!isObject(value)) return false;
  if ('calls' in value) return Array.isArray(value['calls']) && value['calls'].every(isCall);
  return typeof value['name'] === 'string' || typeof value['confirmed'] === 'number' || value['close'] === true;
}

/** Whether a message of another process is a response. */
export function isResponse(value: unknown): value is Response {
  if (!isObject(value)) return false;
  if ('confirm' in value) return typeof value['confirm'] === 'number' && Array.isArray(value['revoked']);
  return (
    Array.isArray(value['replies']) ||
    Array.isArray(value['ready']) ||
    isObject(value['failed']) ||
    value['alive'] === true
  );
}

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
