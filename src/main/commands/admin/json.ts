/** Checked access to JSON responses. */
export type JsonRecord = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses a text that is a JSON object. */
export function asRecord(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A string or number member as text; otherwise ''. */
export function textAt(record: JsonRecord | undefined, name: string): string {
  const value = record?.[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

export function textsAt(record: JsonRecord | undefined, name: string): readonly string[] {
  const value = record?.[name];
  return Array.isArray(value) ? value.filter((element) => typeof element === 'string') : [];
}

export function recordsAt(record: JsonRecord | undefined, name: string): readonly JsonRecord[] {
  const value = record?.[name];
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
