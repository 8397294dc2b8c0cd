/** Retry-After (RFC 9110 §10.2.3). */

/** Maximum: a week. */
const LONGEST = 7 * 86_400;
/** RFC 9110 §5.6.7: IMF-fixdate and the obsolete RFC 850 form. */
const DATE = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -](?:\d{4}|\d{2}) \d{2}:\d{2}:\d{2} GMT$/;
/** The obsolete form of C's asctime, which has no time zone and means UTC. */
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/** @returns seconds, at least 1; undefined for a missing or invalid header */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((parseDate(text) - now) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 1), LONGEST);
}

function parseDate(text: string): number {
  if (ASCTIME.test(text)) return Date.parse(`${text} GMT`);
  return DATE.test(text) ? Date.parse(text) : Number.NaN;
}
