/** Calls of the admin API. The browser adds the session's cookie or its certificate. */

/** A failed call. */
export class ApiError extends Error {
  /** The HTTP status; 0 if the server is unreachable. */
  readonly status: number;
  /** The API's stable code. */
  readonly code: string;
  /** Identifies it in the server's log. */
  readonly requestId: string;

  constructor(status: number, code: string, message: string, requestId = '') {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

export type Query = Readonly<Record<string, string | number | undefined>>;

interface Call {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly query?: Query;
  readonly body?: unknown;
  /** Rows, in place of a JSON body. */
  readonly csv?: string;
  readonly accept?: string;
  /** A token to sign in with, sent once. */
  readonly bearer?: string;
  readonly signal?: AbortSignal | undefined;
}

let onSignedOut: () => void = () => undefined;

/** @param listener is called when the session has ended */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

let onUnreachable: () => void = () => undefined;

/** @param listener is called when a call does not reach the server */
export function whenUnreachable(listener: () => void): void {
  onUnreachable = listener;
}

/** Builds a path below /admin from escaped parts. */
export function adminPath(...parts: readonly string[]): string {
  return `/admin/${parts.map((part) => encodeURIComponent(part)).join('/')}`;
}

/** @param device null as `ca` is the device without a label */
export const devicePath = ({ id, ca }: { readonly id: string; readonly ca: string | null }): string =>
  `${adminPath('devices', id)}?ca=${encodeURIComponent(ca ?? '')}`;

function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return search === '' ? path : `${path}?${search}`;
}

async function send(path: string, { method = 'GET', query, body, csv, accept, bearer, signal }: Call) {
  const payload = csv ?? (body === undefined ? undefined : JSON.stringify(body));
  const headers = {
    Accept: accept ?? 'application/json',
    ...(payload === undefined ? {} : { 'Content-Type': csv === undefined ? 'application/json' : 'text/csv' }),
    ...(bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` }),
  };
  const response = await fetch(address(path, query), {
    method,
    headers,
    credentials: 'same-origin',
    cache: 'no-store',
    ...(payload === undefined ? {} : { body: payload }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error;
    onUnreachable();
    throw new ApiError(0, 'UNREACHABLE', 'The server cannot be reached.');
  });
  if (response.ok) return response;
  const failure = await failureOf(response);
  if (failure.status === 401 && bearer === undefined) onSignedOut();
  throw failure;
}

async function failureOf(response: Response): Promise<ApiError> {
  const answer: unknown = await response.json().catch(() => undefined);
  const id = response.headers.get('x-request-id') ?? '';
  const fields = typeof answer === 'object' && answer !== null ? answer : {};
  const code = 'code' in fields && typeof fields.code === 'string' ? fields.code : `HTTP_${response.status}`;
  const message = 'message' in fields && typeof fields.message === 'string' ? fields.message : response.statusText;
  return new ApiError(response.status, code, message, id);
}

/** The server validates its responses with the schemas of `types.ts`, so the console does not. */
interface Answer<T> {
  json(): Promise<T>;
}

/** Returns a JSON response. @throws ApiError */
export async function call<T>(path: string, options: Call = {}): Promise<T> {
  const answer: Answer<T> = await send(path, options);
  return answer.json();
}

/** A call without a response body. @throws ApiError */
export async function order(path: string, options: Call): Promise<void> {
  await send(path, options);
}

/** Returns a text response, such as CSV. @throws ApiError */
export async function text(path: string, options: Call): Promise<string> {
  return (await send(path, options)).text();
}

/** Converts any error for display. */
export function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'CONSOLE_ERROR', String(error));
}
