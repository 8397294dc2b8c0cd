/** Interprets Dogtag's responses by content, never by HTTP status alone. */
import { failed } from '../../errors.ts';
import type { HttpAnswer, HttpCall } from '../../https-client.ts';

/** This replica cannot serve the call; another one may. */
export class ReplicaFault extends Error {
  readonly mayHaveArrived: boolean;

  constructor(message: string, mayHaveArrived: boolean, cause?: unknown) {
    super(message, { cause });
    this.name = 'ReplicaFault';
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** The replica works but does not have the object; another one may, since replication lags. */
export class NotHere extends ReplicaFault {
  constructor(message: string) {
    super(message, true);
    this.name = 'NotHere';
  }
}

// --- JSON ----------------------------------------------------------------------------------------------------------

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The JSON object of a response, if any: the container may answer errors in HTML or with an empty body. Integers beyond a
 * double (nonces are int64) become strings of digits.
 */
export function readJson({ headers, body }: Pick<HttpAnswer, 'headers' | 'body'>): JsonObject | undefined {
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json') return undefined;
  try {
    const value: unknown = JSON.parse(body.toString('utf8'), exactIntegers);
    return asObject(value);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The reviver's source text access (ECMAScript), missing in TypeScript's declarations. */
function exactIntegers(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || context?.source === undefined) return value;
  return /^-?\d+$/.test(context.source) ? context.source : value;
}

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

/** The objects of a list field; empty if it is not a list. */
export function objectsOf(object: JsonObject, field: string): JsonObject[] {
  const list: unknown = object[field];
  if (!Array.isArray(list)) return [];
  return list.map(asObject).filter((item) => item !== undefined);
}

export function textOf(object: JsonObject, field: string): string | undefined {
  const value = object[field];
  return typeof value === 'string' ? value : undefined;
}

/** A field with an integer of any size, or an integer as text. */
export function digitsOf(object: JsonObject, field: string): string | undefined {
  const value = object[field];
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value);
  return typeof value === 'string' && /^-?\d+$/.test(value) ? value : undefined;
}

export function sentence(text: string): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}

/** The error in a response, for the log. */
export function complaint(answer: HttpAnswer): string {
  const json = readJson(answer);
  const message = json === undefined ? undefined : textOf(json, 'Message');
  const type = answer.headers['content-type'] ?? 'no content type';
  return message === undefined ? `HTTP ${answer.status}, ${type}` : `HTTP ${answer.status}: ${sentence(message)}`;
}

// --- requests and errors ---------------------------------------------------------------------------------------------

/** A certificate request as reported by Dogtag. */
export interface RequestInfo {
  /** Dogtag's request ID: `10`, or `0xa` in newer versions. */
  readonly id: string;
  /** `begin`, `pending`, `approved`, `svc_pending`, `canceled`, `rejected` or `complete`. */
  readonly status: string;
  /** The certificate's serial number, as `0x1f`. */
  readonly certId: string | undefined;
  readonly message: string | undefined;
}

/** @throws ReplicaFault unless it is JSON: the container or a proxy answered instead of the CA */
export function jsonOf(answer: HttpAnswer): JsonObject {
  const json = readJson(answer);
  if (json === undefined) throw new ReplicaFault(complaint(answer), true);
  return json;
}

/** @throws ReplicaFault if a field is missing */
export function requestInfo(json: JsonObject): RequestInfo {
  const status = textOf(json, 'requestStatus');
  const id = requestId(json);
  if (status === undefined || id === undefined) throw new ReplicaFault('the response contains no request', true);
  const message = textOf(json, 'errorMessage');
  return {
    id,
    status,
    certId: textOf(json, 'certId'),
    message: message === undefined || message.trim() === '' ? undefined : sentence(message),
  };
}

/** 10.10 has only the URL; 11.2 and later a hexadecimal `requestID`. */
export const requestId = (json: JsonObject): string | undefined =>
  checkedId(textOf(json, 'requestID') ?? textOf(json, 'requestId') ?? lastSegment(json, 'requestURL'));

/** The key ID at the end of `keyURL`. */
export const keyId = (json: JsonObject): string | undefined => checkedId(lastSegment(json, 'keyURL'));

const lastSegment = (json: JsonObject, field: string): string | undefined => textOf(json, field)?.split('/').at(-1);

const checkedId = (id = ''): string | undefined => (/^(0x)?[0-9a-f]{1,40}$/i.test(id) ? id : undefined);

export function onlyRequest(json: JsonObject): RequestInfo {
  const [entry, ...more] = objectsOf(json, 'entries');
  if (entry === undefined || more.length > 0)
    throw new ReplicaFault('the response does not contain exactly one request', true);
  return requestInfo(entry);
}

interface DogtagError {
  /** Java class without its package. */
  readonly type: string;
  readonly message: string;
}

export function errorOf(answer: HttpAnswer): DogtagError | undefined {
  const json = answer.status < 400 ? undefined : asObject(readJson(answer));
  const type = json === undefined ? undefined : textOf(json, 'ClassName');
  if (json === undefined || type === undefined) return undefined;
  return { type: type.split('.').at(-1) ?? type, message: sentence(textOf(json, 'Message') ?? '') };
}

/** A call in a session or at a replica. */
export type SessionCall = (call: Pick<HttpCall, 'method' | 'path' | 'headers' | 'body'>) => Promise<HttpAnswer>;

/** A POST of JSON. */
export const jsonPost = (path: string, body: JsonObject) =>
  ({
    method: 'POST',
    path,
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.from(JSON.stringify(body), 'utf8'),
  }) as const;

/** The JSON at a path. @throws as {@link readAnswer} */
export const getJson = async (call: SessionCall, path: string): Promise<JsonObject> =>
  readAnswer(await call({ method: 'GET', path }));

/** The JSON of a read, which must have status 200. @throws ReplicaFault; EstuaryError 500 if Dogtag refuses */
export function readAnswer(answer: HttpAnswer): JsonObject {
  if (answer.status === 200) return jsonOf(answer);
  const error = errorOf(answer);
  // The directory of this replica alone may be down: 401 and 5xx are retried at other replicas.
  if (error === undefined || answer.status === 401 || answer.status >= 500)
    throw new ReplicaFault(complaint(answer), true);
  throw failed('CA_REFUSED', 'The CA refused the request.', { detail: complaint(answer) });
}
