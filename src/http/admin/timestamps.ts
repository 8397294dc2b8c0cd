import { badRequest } from '../../errors.ts';

const ISO_8601 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-](\d\d):(\d\d))$/;

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
  const match = ISO_8601.exec(text);
  const ms = match === null || !isCalendarDate(match) ? Number.NaN : Date.parse(text);
  if (Number.isNaN(ms)) throw badRequest('FIELD_INVALID', `${field} ${TIMESTAMP_RULE}`);
  return ms;
}

/** `Date.parse` takes 30 February for 2 March, and hour 24. */
function isCalendarDate(match: RegExpExecArray): boolean {
  const [year = 0, month = 0, day = 0, hour = 0, , , offsetHour = 0, offsetMinute = 0] = match
    .slice(1)
    .map((part: string | undefined) => Number(part ?? 0));
  const date = new Date(Date.UTC(year, month - 1, day));
  return (
    year >= 1970 &&
    date.getUTCMonth() === month - 1 &&
    date.getUTCDate() === day &&
    hour < 24 &&
    offsetHour < 24 &&
    offsetMinute < 60
  );
}
