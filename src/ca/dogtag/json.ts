/** Parses Dogtag's JSON. The container may answer errors in HTML or with an empty body. */
import type { HttpAnswer } from '../remote/http.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The JSON object of a response, if any. Integers beyond a double (nonces are int64) become strings of digits. */
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

export function sentence(text: string, limit = 300): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/** The error in a response, for the log. */
export function complaint(answer: HttpAnswer): string {
  const json = readJson(answer);
  const message = json === undefined ? undefined : textOf(json, 'Message');
  const type = answer.headers['content-type'] ?? 'no content type';
  return message === undefined ? `HTTP ${answer.status}, ${type}` : `HTTP ${answer.status}: ${sentence(message)}`;
}
