/** Recent searches, which this browser keeps until the user signs out, and the recognition of identifiers. */
import { signal } from '@preact/signals';

const KEPT = 'searches';
const MOST = 8;

export const recentSearches = signal<readonly string[]>(kept());

function kept(): readonly string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]');
    return Array.isArray(value)
      ? value.filter((entry): entry is string => typeof entry === 'string').slice(0, MOST)
      : [];
  } catch {
    return [];
  }
}

export function rememberSearch(text: string): void {
  recentSearches.value = [text, ...recentSearches.value.filter((search) => search !== text)].slice(0, MOST);
  localStorage.setItem(KEPT, JSON.stringify(recentSearches.value));
}

export function forgetSearches(): void {
  recentSearches.value = [];
  localStorage.removeItem(KEPT);
}

/** A serial number in the form of the API, from any usual form: with colons, spaces, `0x`, or leading zeros. */
export function serialOf(text: string): string | undefined {
  const hex = text.replace(/^0x/i, '').replaceAll(/[\s:]/g, '').toLowerCase();
  if (!/^[0-9a-f]{2,42}$/.test(hex)) return undefined;
  const whole = hex.length % 2 === 0 ? hex : `0${hex}`;
  const serial = whole.replace(/^(?:00)+(?=..)/, '');
  return serial.length > 40 ? undefined : serial;
}

/** The SHA-256 of a certificate in the form of the API, from any usual form. */
export function fingerprintOf(text: string): string | undefined {
  const hex = text
    .replace(/^sha256[ :/=]*/i, '')
    .replaceAll(/[\s:]/g, '')
    .toLowerCase();
  return /^[0-9a-f]{64}$/.test(hex) ? hex : undefined;
}

/** IDs of requests, tokens and campaigns. */
export const isUuid = (text: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
