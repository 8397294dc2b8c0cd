import { EstuaryError, type ErrorCode, type ErrorStatus } from '../../errors.ts';

/** A write waiting for its transaction. */
export interface Call {
  readonly operation: string;
  /** Typed by the caller and by the operation. */
  readonly args: readonly never[];
  /** Time of the call and of its audit records. */
  readonly time: number;
}

export type Reply = { readonly value: unknown; readonly error?: undefined } | { readonly error: EstuaryError };

/** Carries out the writes of a store. */
export interface Writer {
  /** Names of its operations. */
  readonly operations: readonly string[];
  /** One reply per call, in order. Never rejects, and is not called again before it has resolved. */
  carryOut(calls: readonly Call[]): Promise<readonly Reply[]>;
}

/** An error as a message between threads. */
export interface PlainError {
  readonly status: ErrorStatus;
  readonly code: ErrorCode;
  readonly message: string;
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;
}

export function toPlainError({ status, code, message, detail, retryAfter }: EstuaryError): PlainError {
  return { status, code, message, detail, retryAfter };
}

export function fromPlainError({ status, code, message, detail, retryAfter }: PlainError): EstuaryError {
  return new EstuaryError(status, code, message, {
    ...(detail === undefined ? {} : { detail }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  });
}
