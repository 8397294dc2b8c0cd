/** Lockout and limits for credentials that another service verifies (LDAP, JWT). */
import { expect, test } from 'vitest';
import { CredentialRefused, GuardedAttempts } from '../../src/auth/guarded-attempts.ts';
import { EstuaryError } from '../../src/errors.ts';
import { setUpOtp } from './otp/support.ts';

async function setUp() {
  const { service, clock, store } = await setUpOtp();
  const attempts = new GuardedAttempts({ method: 'ldap', lockout: service.lockout, tokenLength: 20, retryAfter: 7 });
  const outcome = (address: string, check: () => Promise<string>): Promise<string | undefined> =>
    attempts
      .run('device', { address, caLabel: 'devices', now: clock.now }, check)
      .catch((error: unknown) =>
        error instanceof EstuaryError ? `${error.code} ${error.detail ?? ''}`.trim() : String(error),
      );
  return { outcome, store };
}
const wrong = (): Promise<string> => Promise.reject(new CredentialRefused('wrong'));
const right = (): Promise<string> => Promise.resolve('right');

test('64 attempts are in progress at a time, and one that ends makes room', async () => {
  const { outcome } = await setUp();
  const { promise, resolve } = Promise.withResolvers<string>();
  const first = Array.from({ length: 64 }, (_, n) => outcome(`192.0.2.${n}`, () => promise));
  expect(await Promise.race([outcome('198.51.100.1', right), ...first])).toBe(
    'PASSWORD_CHECK_BUSY 64 attempts are already in progress',
  );
  resolve('right');
  expect(new Set(await Promise.all(first))).toEqual(new Set(['right']));
  expect(await outcome('198.51.100.1', right)).toBe('right');
});

test('after the lockout begins, neither a waiting attempt nor one in progress learns whether its password is right', async () => {
  const { outcome } = await setUp();
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const checked: number[] = [];
  const inProgress = Array.from({ length: 3 }, () => outcome('192.0.2.1', () => late));
  const guesses = Array.from({ length: 12 }, (_, n) =>
    outcome('192.0.2.1', () => {
      checked.push(n);
      return wrong();
    }),
  );
  const guessed = await Promise.all(guesses);
  expect(guessed).toEqual([...Array<string>(6).fill('LDAP_INVALID wrong'), ...Array<string>(6).fill('LOCKED_OUT')]);
  expect(checked).toHaveLength(6);
  resolve('right');
  expect(await Promise.all(inProgress)).toEqual(Array(3).fill('LOCKED_OUT'));
});

test('only a rejected credential counts: other errors are passed on', async () => {
  const { outcome } = await setUp();
  for (let n = 0; n < 8; n++)
    expect(await outcome('192.0.2.1', () => Promise.reject(new Error('broken')))).toBe('Error: broken');
  expect(await outcome('192.0.2.1', right)).toBe('right');
});
