/** The form of a token: base62, `otp.token_length` characters, all of them secret. */
import { randomInt } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export const MIN_TOKEN_LENGTH = 8;
export const MAX_TOKEN_LENGTH = 128;

/** A new token from a CSPRNG, each character equally likely. */
export function generateToken(length: number): string {
  if (length < MIN_TOKEN_LENGTH || length > MAX_TOKEN_LENGTH)
    throw new RangeError(`a token has ${MIN_TOKEN_LENGTH} to ${MAX_TOKEN_LENGTH} characters, not ${length}`);
  return Array.from({ length }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('');
}

/** Whether a password can be a token at all. */
export function isTokenLike(password: string): boolean {
  return password.length >= MIN_TOKEN_LENGTH && password.length <= MAX_TOKEN_LENGTH && /^[0-9A-Za-z]+$/.test(password);
}
