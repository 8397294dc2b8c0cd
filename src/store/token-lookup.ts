/**
 * How a token finds its row: by a keyed hash. No character of a token is in the store, and without the key, which is
 * kept apart from it, a stolen database cannot even be searched for a guess.
 */
import { createHmac } from 'node:crypto';

/** Bytes that a lookup key has at least. */
export const MIN_LOOKUP_KEY = 32;

/** A purpose for each value under the key, so that none can stand for another. */
type Purpose = 'token' | 'key check';

function keyedHash(key: Buffer, purpose: Purpose, value: string): string {
  return createHmac('sha256', key).update(`estuary otp ${purpose}\0${value}`).digest('hex');
}

/** What a token's row is found by, hex. */
export function tokenLookup(key: Buffer, token: string): string {
  return keyedHash(key, 'token', token);
}

/** What the store remembers of a key, to know it again. */
export function keyCheck(key: Buffer): string {
  return keyedHash(key, 'key check', '');
}
