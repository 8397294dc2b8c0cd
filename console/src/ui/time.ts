/** Times in words, as near as they matter. */

const STEPS: readonly (readonly [limit: number, size: number, unit: Intl.RelativeTimeFormatUnit])[] = [
  [60_000, 1000, 'second'],
  [3_600_000, 60_000, 'minute'],
  [86_400_000, 3_600_000, 'hour'],
  [60 * 86_400_000, 86_400_000, 'day'],
  [730 * 86_400_000, 30.44 * 86_400_000, 'month'],
  [Infinity, 365.25 * 86_400_000, 'year'],
];

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** "3 minutes ago", "in 12 days". */
export function ago(at: string, now = Date.now()): string {
  const distance = Date.parse(at) - now;
  if (Number.isNaN(distance)) return at;
  if (Math.abs(distance) < 10_000) return 'just now';
  const [, size, unit] = STEPS.find(([limit]) => Math.abs(distance) < limit) ?? [0, 1000, 'second'];
  return relative.format(Math.trunc(distance / size), unit);
}

/** UTC to the second: what the API and the logs say, easier to read. */
export function exactTime(at: string): string {
  return at.replace('T', ' ').replace(/(?:\.\d+)?Z$/, ' UTC');
}

/** Whole days from now until then; negative after it. */
export const daysUntil = (at: string, now = Date.now()): number => Math.floor((Date.parse(at) - now) / 86_400_000);

/** What a date field holds, as the API takes it: the beginning of that day, UTC. */
export const startOfDay = (date: string): string | undefined => (date === '' ? undefined : `${date}T00:00:00Z`);

/** The API's time as a date field holds it. */
export const dateOf = (at: string | undefined): string => at?.slice(0, 10) ?? '';
