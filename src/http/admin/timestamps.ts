import { badRequest } from '../../errors.ts';
import { readTimestamp } from '../../timestamp.ts';

/** What a timestamp has to be; completes a sentence that begins with the field's name. */
export const TIMESTAMP_RULE = 'must be an ISO 8601 timestamp with Z or an offset, like 2030-01-31T12:00:00Z';

/** Milliseconds since the epoch as ISO 8601 UTC with `Z` and milliseconds. */
export const formatTimestamp = (ms: number): string => new Date(ms).toISOString();

export const formatOptionalTimestamp = (ms: number | null): string | null => (ms === null ? null : formatTimestamp(ms));

/**
 * Reads an ISO 8601 timestamp with `Z` or a numeric offset.
 *
 * @param field the name for the error message
 * @returns milliseconds since the epoch
 * @throws {EstuaryError} 400 `FIELD_INVALID` when it is none, has no offset, or names a day that does not exist
 */
export function parseTimestamp(field: string, text: string): number {
  const ms = readTimestamp(text);
  if (ms === undefined) throw badRequest('FIELD_INVALID', `${field} ${TIMESTAMP_RULE}`);
  return ms;
}

/** {@link parseTimestamp} of a parameter that may be absent. */
export const parseOptionalTimestamp = (field: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseTimestamp(field, text);
