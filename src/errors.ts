import type { CodeOf, ErrorCode, ErrorStatus } from './errors/codes.ts';

export type { ErrorCode, ErrorStatus } from './errors/codes.ts';

/** What an error needs beside its public sentence. */
export interface ErrorOptions {
  /** For the log only: may name paths, library messages, identifiers. Never a secret. */
  readonly detail?: string;
  /** Seconds for a Retry-After header. */
  readonly retryAfter?: number;
  readonly cause?: unknown;
}

/**
 * What an error means to the code that catches it; statuses are for the answer alone. The first three are refusals:
 * the same request is refused again.
 */
export type ErrorKind = 'bad-request' | 'unauthenticated' | 'forbidden' | 'unavailable' | 'failure';

function kindOf(status: ErrorStatus): ErrorKind {
  if (status === 401) return 'unauthenticated';
  if (status === 403) return 'forbidden';
  if (status === 503) return 'unavailable';
  return status < 500 ? 'bad-request' : 'failure';
}

/**
 * The one error family of Estuary. `code` is stable (docs/reference/errors.md lists them all), `status` is the HTTP
 * status it maps to, `message` is public: one sentence a person can act on. Everything private goes into `detail`.
 */
export class EstuaryError extends Error {
  readonly code: ErrorCode;
  readonly status: ErrorStatus;
  readonly kind: ErrorKind;
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(status: ErrorStatus, code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EstuaryError';
    this.code = code;
    this.status = status;
    this.kind = kindOf(status);
    this.detail = options.detail;
    this.retryAfter = options.retryAfter;
  }
}

/** An error of a status that has no function of its own below. */
export function errorWith<Status extends ErrorStatus>(
  status: Status,
  code: CodeOf<Status>,
  message: string,
  options?: ErrorOptions,
): EstuaryError {
  return new EstuaryError(status, code, message, options);
}

/** 400: the request is malformed or refused by policy. */
export function badRequest(code: CodeOf<400>, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(400, code, message, options);
}

/** 401: nobody authenticated, with the message of the method that was tried. */
export function unauthorized(code: CodeOf<401>, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(401, code, message, options);
}

/** 403: authenticated, but not allowed to do this. */
export function forbidden(code: CodeOf<403>, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(403, code, message, options);
}

/** 404: no such label, token, certificate … */
export function notFound(code: CodeOf<404>, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(404, code, message, options);
}

/** 409: the thing is already in the state asked for, or in one that forbids it. */
export function conflict(code: CodeOf<409>, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(409, code, message, options);
}

/** 500: something of ours failed; the reason goes to the log only. */
export function failed(code: CodeOf<500>, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(500, code, message, options);
}

/** 503: known to be down or at its bound for now; carries Retry-After where the caller knows the seconds. */
export function unavailable(code: CodeOf<503>, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(503, code, message, options);
}

type OfKind<Kind extends ErrorKind> = EstuaryError & { readonly kind: Kind };

/** Whether the request itself was refused, so that it would be again: not a failure, and nothing that passes. */
export function isRefusal(error: unknown): error is OfKind<'bad-request' | 'unauthenticated' | 'forbidden'> {
  return error instanceof EstuaryError && error.kind !== 'unavailable' && error.kind !== 'failure';
}

/** Whether nobody was authenticated. */
export function isUnauthenticated(error: unknown): error is OfKind<'unauthenticated'> {
  return error instanceof EstuaryError && error.kind === 'unauthenticated';
}

/** Whether it passes: something is down or at its bound for now. */
export function isUnavailable(error: unknown): error is OfKind<'unavailable'> {
  return error instanceof EstuaryError && error.kind === 'unavailable';
}

/** The message of anything thrown, for a log's detail. */
export function describe(error: unknown): string {
  if (error instanceof EstuaryError)
    return error.detail === undefined ? error.message : `${error.message}: ${error.detail}`;
  return error instanceof Error ? error.message : String(error);
}
