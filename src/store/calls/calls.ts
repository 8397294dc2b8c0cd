import { EstuaryError, type ErrorCode, type ErrorStatus } from '../../errors.ts';

/** A write, as it waits for its transaction. */
export interface Call {
  readonly operation: string;
  /** Typed where the call is made and where the operation is. */
  readonly args: readonly never[];
  /** When it was made: the time of its audit records, ms. */
  readonly time: number;
}

export type Reply = { readonly value: unknown; readonly error?: undefined } | { readonly error: EstuaryError };

/** What carries out the writes of a store. */
export interface Writer {
  /** The names of what it carries out. */
  readonly operations: readonly string[];
  /** One reply for each call, in their order. It never rejects, and is not called again before it has resolved. */
  carryOut(calls: readonly Call[]): Promise<readonly Reply[]>;
}

/** An error as a message between threads contains it. */
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
