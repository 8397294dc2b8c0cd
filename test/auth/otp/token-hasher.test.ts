/** The form of a token (base62, 8 to 128 characters), and its hash. */
import { expect, test } from 'vitest';
import { generateToken, isTokenLike, TokenHasher } from '../../../src/auth/otp/token-hasher.ts';
import { SETTINGS } from './support.ts';

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

test('a hash of an unknown algorithm, and a part of a hash, match no token', async () => {
  const hasher = await TokenHasher.create(SETTINGS);
  const token = generateToken(20);
  const hash = await hasher.hash(token);
  const digest = hash.slice('hmac-sha256:'.length);
  expect(await hasher.verify(hash, token)).toBe(true);
  for (const encoded of [`hmac-sha512:${digest}`, hash.slice(0, -2), 'hmac-sha256:', ''])
    expect(await hasher.verify(encoded, token), encoded).toBe(false);
});
