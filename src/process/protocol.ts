/** Messages between parent and child of an isolated process over IPC (structured clone). */

/** Parent → child; the first is always {@link INIT}. */
interface Request {
  readonly id: number;
  readonly method: string;
  readonly args: unknown;
}

/** Method name of the start payload; reserved. */
export const INIT = '#init';

/** Child → parent; exactly one per request. */
export type Reply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: RemoteFailure };

interface RemoteFailure {
  readonly message: string;
  readonly code: string;
  readonly permanent: boolean;
}

/**
 * A failure reported by the isolated code, as opposed to a crash or a hang: thrown in the child, rethrown in the parent
 * with the same fields. `permanent` on a failed start means that a retry cannot help and may harm (a wrong PIN locks
 * the token), so the process stays down.
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

/** Serializes an error of the child: only the message, no object or stack. */
export function toFailure(error: unknown): RemoteFailure {
  if (error instanceof IsolatedError) return { message: error.message, code: error.code, permanent: error.permanent };
  const message = error instanceof Error ? error.message : String(error);
  return { message, code: 'UNEXPECTED', permanent: false };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

export function parseRequest(message: unknown): Request | undefined {
  if (!isObject(message)) return undefined;
  const { id, method, args } = message;
  return typeof id === 'number' && typeof method === 'string' ? { id, method, args } : undefined;
}

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
 * URL of a module that starts as a thread or a child process. The build keeps its path, and puts what calls this next to `server.js`.
 * @param module its path below `src/`, without extension
 */
export function startedModule(module: string): URL {
  const [folder, extension] = import.meta.url.endsWith('.ts') ? ['../', '.ts'] : ['./', '.js'];
  return new URL(`${folder}${module}${extension}`, import.meta.url);
}
