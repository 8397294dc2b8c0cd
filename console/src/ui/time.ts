/** Formats times, relative and in a time zone. */

const DAY = 86_400_000;
const STEPS: readonly (readonly [limit: number, size: number, unit: Intl.RelativeTimeFormatUnit])[] = [
  [60_000, 1000, 'second'],
  [3_600_000, 60_000, 'minute'],
  [DAY, 3_600_000, 'hour'],
  [60 * DAY, DAY, 'day'],
  [730 * DAY, 30.44 * DAY, 'month'],
  [Infinity, 365.25 * DAY, 'year'],
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

const formats = new Map<string, readonly [time: Intl.DateTimeFormat, zone: Intl.DateTimeFormat]>();

function formatsOf(timeZone: string): readonly [time: Intl.DateTimeFormat, zone: Intl.DateTimeFormat] {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const made = [
    // Sweden writes dates as ISO 8601 does.
    new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' }),
    new Intl.DateTimeFormat('en-GB', { timeZone, timeZoneName: 'short' }),
  ] as const;
  formats.set(timeZone, made);
  return made;
}

/** `2026-11-22 12:00:01` */
function localTime(at: string, timeZone: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : formatsOf(timeZone)[0].format(date);
}

/** To the second, with the zone: `2026-11-22 12:00:01 UTC`. */
export function exactTime(at: string, timeZone = 'UTC'): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const zone = formatsOf(timeZone)[1].formatToParts(date);
  return `${localTime(at, timeZone)} ${zone.find(({ type }) => type === 'timeZoneName')?.value ?? timeZone}`;
}

/** To the minute, for tables: `2026-11-22 12:00`. */
export const shortTime = (at: string, timeZone = 'UTC'): string => localTime(at, timeZone).slice(0, 16);

/** Converts a date field to a time for the API: the start of that day in a zone. */
export function startOfDay(date: string, timeZone = 'UTC'): string | undefined {
  const day = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(day)) return undefined;
  const ahead = (at: number): number => Date.parse(`${localTime(new Date(at).toISOString(), timeZone)}Z`) - at;
  // The second look is for a day on which the clocks change.
  return new Date(day - ahead(day - ahead(day))).toISOString().replace('.000Z', 'Z');
}

/** Converts a time of the API to a date field. */
export const dateOf = (at: string | undefined, timeZone = 'UTC'): string =>
  at === undefined ? '' : localTime(at, timeZone).slice(0, 10);
