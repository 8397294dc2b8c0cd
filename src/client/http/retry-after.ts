/** Retry-After (RFC 9110 §10.2.3). */

/** A server that says "in a year" is not believed. */
const LONGEST = 7 * 86_400;

/**
 * @param now milliseconds since the epoch
 * @returns seconds, 1 at least; undefined where there is none that can be read
 */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - now) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 1), LONGEST);
}
