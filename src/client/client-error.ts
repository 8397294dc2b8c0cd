/** What goes wrong for an EST client, and what it means for the next attempt. */

/**
 * `refused`: the same request is refused again, so a new one is made at the next attempt · `unauthenticated`: the credentials were
 * · `later`: it passes · `local`: something here (configuration, files, hook) · `untrusted`: the server is not whom it has to be.
 */
type ClientErrorKind = 'refused' | 'unauthenticated' | 'later' | 'local' | 'untrusted';

export type ClientErrorCode =
  | 'ANSWER_INVALID'
  | 'CA_UNTRUSTED'
  | 'CLOCK_WRONG'
  | 'CREDENTIALS_MISSING'
  | 'CSRATTRS_UNMET'
  | 'FILES_UNUSABLE'
  | 'HOOK_FAILED'
  | 'KEY_UNUSABLE'
  | 'PROXY_FAILED'
  | 'REDIRECTED'
  | 'REFUSED'
  | 'SERVER_UNAVAILABLE'
  | 'SERVER_UNREACHABLE'
  | 'SERVER_UNTRUSTED';

/** The message is a sentence for whoever runs the client; it holds no secret. */
export class ClientError extends Error {
  readonly kind: ClientErrorKind;
  readonly code: ClientErrorCode;
  /** Seconds that the server wants to be left alone. */
  readonly retryAfter: number | undefined;
  /** Of the answer, where there was one. */
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
