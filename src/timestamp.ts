/** Times as text: ISO 8601 in UTC, as every response and record has them. */
export const formatTimestamp = (ms: number): string => new Date(ms).toISOString();

export const formatOptionalTimestamp = (ms: number | null): string | null => (ms === null ? null : formatTimestamp(ms));

const ISO_8601 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-](\d\d):(\d\d))$/;

/**
 * Parses an ISO 8601 timestamp with `Z` or a numeric offset.
 * @returns undefined if it is malformed, has no offset, or names a day that does not exist
 */
export function readTimestamp(text: string): number | undefined {
  const match = ISO_8601.exec(text);
  const ms = match === null || !isCalendarDate(match) ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** `Date.parse` accepts 30 February as 2 March, and hour 24. */
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
