/** Errors of an EST client, and their consequence for the next attempt. */

/**
 * `refused`: the same request would be rejected again, so the next attempt makes a new one; `unauthenticated`: the
 * credentials were rejected; `disabled`: the server does not issue to this device; `later`: temporary; `local`:
 * configuration, files or hook; `untrusted`: the server is not authenticated.
 */
type ClientErrorKind = 'disabled' | 'refused' | 'unauthenticated' | 'later' | 'local' | 'untrusted';

export type ClientErrorCode =
  | 'ANSWER_INVALID'
  | 'CA_UNTRUSTED'
  | 'CLOCK_WRONG'
  | 'CREDENTIALS_MISSING'
  | 'CSRATTRS_UNMET'
  | 'DEVICE_DISABLED'
  | 'FILES_UNUSABLE'
  | 'HOOK_FAILED'
  | 'KEY_UNUSABLE'
  | 'PROXY_FAILED'
  | 'REDIRECTED'
  | 'REFUSED'
  | 'SERVER_UNAVAILABLE'
  | 'SERVER_UNREACHABLE'
  | 'SERVER_UNTRUSTED';

/** The message is for the client's operator and contains no secret. */
export class ClientError extends Error {
  readonly kind: ClientErrorKind;
  readonly code: ClientErrorCode;
  /** Seconds. */
  readonly retryAfter: number | undefined;
  /** Of the response, if any. */
  readonly status: number | undefined;

  constructor(
    kind: ClientErrorKind,
    code: ClientErrorCode,
    message: string,
    more: { readonly retryAfter?: number | undefined; readonly status?: number; readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'ClientError';
    this.kind = kind;
    this.code = code;
    this.retryAfter = more.retryAfter;
    this.status = more.status;
  }
}
