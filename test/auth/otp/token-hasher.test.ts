/** The form of a token: base62, 8 to 128 characters. */
import { expect, test } from 'vitest';
import { generateToken, isTokenLike } from '../../../src/auth/otp/token-hasher.ts';

test('a token has 8 to 128 characters, and has the form of one', () => {
  for (const length of [8, 128]) {
    expect(generateToken(length)).toHaveLength(length);
    expect(isTokenLike(generateToken(length))).toBe(true);
  }
  for (const length of [7, 129]) expect(() => generateToken(length)).toThrow(`not ${length}`);
});

test.each([
  ['7 characters', 'a'.repeat(7)],
  ['129 characters', 'a'.repeat(129)],
  ['another character', 'aaaaaaa-'],
  ['a line break at the end', 'aaaaaaaa\n'],
])('%s are not a token', (_, password) => {
  expect(isTokenLike(password)).toBe(false);
});
