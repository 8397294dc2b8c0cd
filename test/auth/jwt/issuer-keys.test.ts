/** The token issuer's public keys: which are used, for how long, and when they are fetched again (docs/guides/jwt.md). */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { IssuerKeys } from '../../../src/auth/jwt/issuer-keys.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { until } from '../../support/until.ts';
import { temporaryFolder } from '../../support/openssl.ts';

const MINUTE = 60_000;
const folder = temporaryFolder();
afterAll(folder.remove);

async function jwk(kid: string): Promise<JWK> {
  const { publicKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(publicKey)), alg: 'ES256', kid };
}
const [one, two] = [await jwk('one'), await jwk('two')];

let now = 0;
const file = folder.file('jwks.json');
const publish = (...keys: readonly unknown[]): void => writeFileSync(file, JSON.stringify({ keys }));
const issuerKeys = (): IssuerKeys => new IssuerKeys({ source: { file }, retryAfter: 30, now: () => now });

/** `found`, the library's code, or the detail of the 503. */
const outcome = (keys: IssuerKeys, kid: string): Promise<string | undefined> =>
  keys.find({ alg: 'ES256', kid }, { payload: '', signature: '' }).then(
    () => 'found',
    (error: unknown) => (error instanceof EstuaryError ? error.detail : String(Reflect.get(Object(error), 'code'))),
  );
const NO_KEY = 'ERR_JWKS_NO_MATCHING_KEY';

beforeEach(() => {
  now = 1_000_000 * MINUTE;
  publish(one);
});

test('an unknown key is looked for once a minute at most', async () => {
  const keys = issuerKeys();
  expect(await outcome(keys, 'one')).toBe('found');
  publish(two);
  expect(await outcome(keys, 'two')).toBe('found');
  publish(one);
  expect(await outcome(keys, 'one')).toBe(NO_KEY);
  now += MINUTE - 1;
  expect(await outcome(keys, 'one')).toBe(NO_KEY);
  now += 1;
  expect(await outcome(keys, 'one')).toBe('found');
});

test('a known key needs no look-up, and a header that names a key of another kind causes none', async () => {
  const keys = issuerKeys();
  expect(await outcome(keys, 'one')).toBe('found');
  publish(two);
  expect(await outcome(keys, 'one')).toBe('found');
  // Two keys fit a header without a name.
  publish({ ...one, kid: 'a' }, { ...two, kid: 'b' });
  expect(await outcome(keys, 'b')).toBe('found');
  now += MINUTE;
  await expect(keys.find({ alg: 'ES256' }, { payload: '', signature: '' })).rejects.toMatchObject({
    code: 'ERR_JWKS_MULTIPLE_MATCHING_KEYS',
  });
  publish(one);
  expect(await outcome(keys, 'one'), 'the minute has not been used').toBe('found');
});

test('keys are refreshed after ten minutes in the background, and are not used after an hour', async () => {
  const keys = issuerKeys();
  expect(await outcome(keys, 'one')).toBe('found');
  publish(two);
  now += 10 * MINUTE + 1;
  expect(await outcome(keys, 'one'), 'the refresh is in the background').toBe('found');
  await until('the refresh', async () => (await outcome(keys, 'two')) === 'found');
  writeFileSync(file, 'broken');
  now += 60 * MINUTE;
  expect(await outcome(keys, 'two')).toBe('found');
  now += 1;
  expect(await outcome(keys, 'two')).toMatch(/JSON/);
});

test('keys of ten minutes need no refresh', async () => {
  const keys = issuerKeys();
  await keys.probe();
  now += 10 * MINUTE;
  expect(await outcome(keys, 'one')).toBe('found');
  // Waits for a refresh, if there is one.
  await keys.probe();
  publish(two);
  expect(await outcome(keys, 'two'), 'the minute has not been used').toBe('found');
});

test('a refresh that fails is not repeated within a minute, and the keys go on working', async () => {
  const keys = issuerKeys();
  await keys.probe();
  now += 11 * MINUTE;
  writeFileSync(file, 'broken');
  expect(await outcome(keys, 'one')).toBe('found');
  publish(two);
  now += MINUTE - 1;
  expect(await outcome(keys, 'two')).toBe(NO_KEY);
});

test('at most 32 requests wait for the keys', async () => {
  const keys = issuerKeys();
  const outcomes = await Promise.all(Array.from({ length: 33 }, () => outcome(keys, 'one')));
  expect(outcomes.filter((outcome) => outcome === 'found')).toHaveLength(32);
  expect(outcomes[32]).toBe('32 requests are already waiting for the keys');
});

test('a JWKS needs 1 to 64 public keys; symmetric ones do not count, and it is at most 256 KiB', async () => {
  const many = (length: number): JWK[] => Array.from({ length }, (_, n) => ({ ...one, kid: `key-${n}` }));
  const padded = (length: number): string => {
    const text = JSON.stringify({ keys: [one] });
    return text + ' '.repeat(length - text.length);
  };
  const symmetric = { kty: 'oct', k: 'AAAA', kid: 'one' };
  for (const [text, expected] of [
    [JSON.stringify({ keys: [...many(63), symmetric, null, 'text', { kid: 'x' }, one] }), 'found'],
    [JSON.stringify({ keys: [...many(64), one] }), 'the JWKS has 65 public keys (1 to 64)'],
    [JSON.stringify({ keys: [symmetric] }), 'the JWKS has 0 public keys (1 to 64)'],
    [padded(256 << 10), 'found'],
    [padded((256 << 10) + 1), 'the JWKS is larger than 262144 bytes'],
    ['null', 'the JWKS has no list "keys"'],
    ['7', 'the JWKS has no list "keys"'],
  ] as const) {
    writeFileSync(file, text);
    expect(await outcome(issuerKeys(), 'one'), text.slice(0, 40)).toBe(expected);
  }
});

test('a pipe that nobody writes to is unavailable, as a JWKS or as a token for its URL', async () => {
  const pipe = folder.file('pipe');
  spawnSync('mkfifo', [pipe]);
  for (const source of [{ file: pipe }, { url: 'https://localhost/', ca: () => undefined, tokenFile: pipe }])
    await expect(new IssuerKeys({ source, retryAfter: 30, now: () => now }).probe()).rejects.toThrow(
      'it is a pipe that nobody writes to',
    );
});
