/** What the admin API answers, looked at: nothing in it is taken for granted. */

/** A JSON object. */
export type JsonRecord = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object that a text is, if it is one. */
export function asRecord(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A text or number among the members; anything else is ''. */
export function textAt(record: JsonRecord | undefined, name: string): string {
  const value = record?.[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

export function textsAt(record: JsonRecord | undefined, name: string): readonly string[] {
  const value = record?.[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

export function recordsAt(record: JsonRecord | undefined, name: string): readonly JsonRecord[] {
  const value = record?.[name];
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
