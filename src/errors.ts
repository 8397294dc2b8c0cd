import type { CodeOf, ErrorCode, ErrorStatus } from './error-codes.ts';

export type { ErrorCode, ErrorStatus } from './error-codes.ts';

/** An error's data in addition to its public message. */
export interface ErrorOptions {
  /** For the log only: may contain paths, library messages, identifiers. Never a secret. */
  readonly detail?: string;
  readonly retryAfter?: number;
  readonly cause?: unknown;
}

/**
 * What an error means to the code that catches it; statuses are only for responses. The first three are rejections: the
 * same request would be rejected again.
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

export function errorWith<Status extends ErrorStatus>(
  status: Status,
  code: CodeOf<Status>,
  message: string,
  options?: ErrorOptions,
): EstuaryError {
  return new EstuaryError(status, code, message, options);
}

const errorOf =
  <Status extends ErrorStatus>(status: Status) =>
  (code: CodeOf<Status>, message: string, options?: ErrorOptions): EstuaryError =>
    new EstuaryError(status, code, message, options);

/** 400: malformed, or rejected by policy. */
export const badRequest = errorOf(400);
/** 401: not authenticated, with the message of the attempted method. */
export const unauthorized = errorOf(401);
/** 403: authenticated but not permitted. */
export const forbidden = errorOf(403);
/** 404: no such label, token, certificate … */
export const notFound = errorOf(404);
/** 409: the object's current state forbids the operation. */
export const conflict = errorOf(409);
/** 500: an internal failure; the reason is only logged. */
export const failed = errorOf(500);
/** 503: temporarily down or over a limit; with Retry-After if the caller knows it. */
export const unavailable = errorOf(503);

type OfKind<Kind extends ErrorKind> = EstuaryError & { readonly kind: Kind };

/** Whether the request itself was rejected and would be again; not a failure, and not temporary. */
export function isRefusal(error: unknown): error is OfKind<'bad-request' | 'unauthenticated' | 'forbidden'> {
  return error instanceof EstuaryError && error.kind !== 'unavailable' && error.kind !== 'failure';
}

export function isUnauthenticated(error: unknown): error is OfKind<'unauthenticated'> {
  return error instanceof EstuaryError && error.kind === 'unauthenticated';
}

/** Whether the error is temporary. */
export function isUnavailable(error: unknown): error is OfKind<'unavailable'> {
  return error instanceof EstuaryError && error.kind === 'unavailable';
}

/** The code of a system error or a library's error, such as `ENOENT`; empty without one. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

/** The message of any thrown value, for a log or an operator. Errors of files say in words which file and why. */
export function describe(error: unknown): string {
  if (error instanceof EstuaryError)
    return error.detail === undefined ? error.message : `${error.message.replace(/\.$/, '')}: ${error.detail}`;
  if (!(error instanceof Error)) return String(error);
  return withoutBinary(error) ?? error.message.replace(SYSTEM_ERROR, systemMessage);
}

/** An npm package whose compiled part is missing or of another platform. */
const NATIVE_PACKAGE = /node_modules\/(argon2|better-sqlite3|graphene-pk11|kerberos|pkcs11js)\b/;
const NOT_LOADED = /^(?:No native build|Could not locate the bindings|Cannot find module .*\.node\b)/;

function withoutBinary(error: Error): string | undefined {
  const [reason = ''] = error.message.split('\n');
  if (codeOf(error) !== 'ERR_DLOPEN_FAILED' && !NOT_LOADED.test(reason)) return undefined;
  const name = NATIVE_PACKAGE.exec(`${error.message}\n${error.stack ?? ''}`)?.[1];
  return name === undefined
    ? undefined
    : `the compiled part of the package ${name} cannot be loaded: ${reason}. Run "npm rebuild ${name}", which needs python3, make and g++`;
}

/** Node's form, such as `ENOENT: no such file or directory, open '/etc/est.toml'`. */
const SYSTEM_ERROR = /^E[A-Z0-9]+: (.+), ([a-z0-9]+)(?: '(.+)')?$/u;

/** What a call does, where its name does not say it. */
const CALLS: Readonly<Record<string, string>> = {
  lstat: 'find',
  mkdir: 'create the folder',
  scandir: 'read the folder',
  stat: 'find',
  unlink: 'delete',
};

const systemMessage = (_: string, reason: string, call: string, path?: string): string =>
  `cannot ${CALLS[call] ?? call}${path === undefined ? '' : ` ${path}`}: ${reason}`;
