/** Parses times: `2026-11-30T12:00:00Z`, a date, or a relative time. */
import { readTimestamp } from '../../../timestamp.ts';
import { UsageError } from '../command.ts';

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Returns the API's format. @param towards direction of a relative time: 1 future, -1 past @throws UsageError */
export function readTime(option: string, text: string, now: number, towards: 1 | -1): string {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  const length = UNITS[unit];
  const time =
    length !== undefined
      ? now + towards * Number(count) * length
      : readTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);
  const date = time === undefined ? undefined : new Date(time);
  if (date === undefined || Number.isNaN(date.getTime()))
    throw new UsageError(
      `${option}: "${text}" must be a time like 2030-01-31T12:00:00Z, a date like 2030-01-31, or a period ${towards === 1 ? 'from now' : 'ago'} like 90m, 12h or 30d`,
    );
  return date.toISOString();
}

/** In seconds. @throws UsageError */
export function readPeriod(option: string, text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,7})([smhdw])$/.exec(text) ?? [];
  const length = UNITS[unit];
  if (length === undefined) throw new UsageError(`${option}: "${text}" must be a period like 90m, 12h or 2d`);
  return (Number(count) * length) / 1000;
}

/** @throws UsageError */
export function readCount(option: string, text: string | undefined, least = 1): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text);
  if (!/^\d{1,9}$/.test(text) || count < least)
    throw new UsageError(`${option}: "${text}" must be a whole number of at least ${least}`);
  return count;
}
