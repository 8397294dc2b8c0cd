/** What an error needs beside its public sentence. */
export interface ErrorOptions {
  /** For the log only: may name paths, library messages, identifiers. Never a secret. */
  readonly detail?: string;
  /** Seconds for a Retry-After header. */
  readonly retryAfter?: number;
  readonly cause?: unknown;
}

/**
 * The one error family of Estuary. `code` is stable (tests and the admin API rely on it), `status` is the HTTP
 * status it maps to, `message` is public: one sentence a person can act on. Everything private goes into `detail`.
 */
export class EstuaryError extends Error {
  readonly code: string;
  readonly status: number;
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(status: number, code: string, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EstuaryError';
    this.code = code;
    this.status = status;
    this.detail = options.detail;
    this.retryAfter = options.retryAfter;
  }
}

/** 400: the request is malformed or refused by policy. */
export function badRequest(code: string, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(400, code, message, options);
}

/** 401: nobody authenticated, with the message of the method that was tried. */
export function unauthorized(code: string, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(401, code, message, options);
}

/** 403: authenticated, but not allowed to do this. */
export function forbidden(code: string, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(403, code, message, options);
}

/** 404: no such label, token, certificate … */
export function notFound(code: string, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(404, code, message, options);
}

/** 409: the thing is already in the state asked for, or in one that forbids it. */
export function conflict(code: string, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(409, code, message, options);
}

/** 500: something of ours failed; the reason goes to the log only. */
export function failed(code: string, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(500, code, message, options);
}

/** 503: known to be down or at its bound for now; carries Retry-After where the caller knows the seconds. */
export function unavailable(code: string, message: string, options?: ErrorOptions): EstuaryError {
  return new EstuaryError(503, code, message, options);
}

/** The message of anything thrown, for a log's detail. */
export function describe(error: unknown): string {
  if (error instanceof EstuaryError)
    return error.detail === undefined ? error.message : `${error.message}: ${error.detail}`;
  return error instanceof Error ? error.message : String(error);
}
