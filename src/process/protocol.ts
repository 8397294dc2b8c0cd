/** What parent and child of an isolated process say to each other over the IPC channel (structured clone). */

/** Parent → child: the first is always {@link INIT}. */
interface Request {
  readonly id: number;
  readonly method: string;
  readonly args: unknown;
}

/** The method name of the start payload; no service method may use it. */
export const INIT = '#init';

/** Child → parent: exactly one for each request. */
export type Reply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: RemoteFailure };

interface RemoteFailure {
  readonly message: string;
  readonly code: string;
  readonly permanent: boolean;
}

/**
 * A failure that the isolated code reports itself (as opposed to a crash or a hang): thrown in the child, rethrown in
 * the parent with the same fields. `permanent` on a failed start means that trying again cannot help and may harm (a
 * wrong PIN locks the token), so the process then stays down.
 */
export class IsolatedError extends Error {
  readonly code: string;
  readonly permanent: boolean;

  constructor(code: string, message: string, options: { readonly permanent?: boolean } = {}) {
    super(message);
    this.name = 'IsolatedError';
    this.code = code;
    this.permanent = options.permanent ?? false;
  }
}

/** Anything thrown in the child, as it travels; only messages, never objects or stacks. */
export function toFailure(error: unknown): RemoteFailure {
  if (error instanceof IsolatedError) return { message: error.message, code: error.code, permanent: error.permanent };
  const message = error instanceof Error ? error.message : String(error);
  return { message, code: 'UNEXPECTED', permanent: false };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The request in a message, or undefined for anything else. */
export function parseRequest(message: unknown): Request | undefined {
  if (!isObject(message)) return undefined;
  const { id, method, args } = message;
  return typeof id === 'number' && typeof method === 'string' ? { id, method, args } : undefined;
}

/** The reply in a message, or undefined for anything else. */
export function parseReply(message: unknown): Reply | undefined {
  if (!isObject(message)) return undefined;
  const { id, ok, value, error } = message;
  if (typeof id !== 'number') return undefined;
  if (ok === true) return { id, ok, value };
  if (ok !== false || !isObject(error)) return undefined;
  const { message: text, code, permanent } = error;
  if (typeof text !== 'string' || typeof code !== 'string' || typeof permanent !== 'boolean') return undefined;
  return { id, ok, error: { message: text, code, permanent } };
}

/**
 * The URL of a module beside the caller's, for a worker thread or a child process: `.ts` when running from source
 * (tests, Node's type stripping), `.js` from `dist/`.
 *
 * @param from the caller's `import.meta.url`
 * @param module relative path without extension, e.g. `./worker`
 */
export function siblingModule(from: string, module: string): URL {
  return new URL(`${module}${from.endsWith('.ts') ? '.ts' : '.js'}`, from);
}
