/** Lockout and limits for credentials that another service verifies (LDAP, JWT). */
import { expect, test } from 'vitest';
import { type AsAccount, CredentialRefused, GuardedAttempts } from '../../src/auth/guarded-attempts.ts';
import { EstuaryError } from '../../src/errors.ts';
import { setUpOtp } from './otp/support.ts';

async function setUp(lockout_scope: 'address' | 'username' = 'address') {
  const { service, clock, store } = await setUpOtp({ lockout_scope });
  const attempts = new GuardedAttempts({ method: 'ldap', lockout: service.lockout, tokenLength: 20, retryAfter: 7 });
  const outcome = (
    address: string,
    check: (keys: readonly string[], as: AsAccount) => Promise<string>,
    name = 'device',
  ): Promise<string | undefined> =>
    attempts
      .run(name, { address, caLabel: 'devices', now: clock.now }, check)
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

test('RFC 4518: a username counts without regard to case, width, and extra white space', async () => {
  const { outcome } = await setUp('username');
  const spellings = ['ld1', 'LD1', ' ld1', 'ld1  ', '\u00a0Ld1', '\uff4c\uff24\uff11'];
  for (const [n, name] of spellings.entries())
    expect(await outcome(`192.0.2.${n}`, wrong, name)).toBe('LDAP_INVALID wrong');
  expect(await outcome('198.51.100.1', right, 'ld1')).toBe('LOCKED_OUT');
  for (const [n, name] of ['stra\u00dfe  1', 'STRASSE 1', 'Stra\u1e9ee\u3000 1'].entries())
    for (const half of [0, 100]) await outcome(`192.0.2.${n + half}`, wrong, name);
  expect(await outcome('198.51.100.1', right, 'strasse 1')).toBe('LOCKED_OUT');
});

test('the account that was found counts, not the name that was typed', async () => {
  const { outcome, store } = await setUp('username');
  const asEntry = (check: () => Promise<string>) => (_keys: readonly string[], as: AsAccount) =>
    as('UID=ld1,dc=example', check);
  for (let n = 0; n < 6; n++)
    expect(await outcome('192.0.2.1', asEntry(wrong), `alias${n}`)).toBe('LDAP_INVALID wrong');
  expect(await outcome('192.0.2.1', asEntry(right), 'another')).toBe('LOCKED_OUT');
  expect(await outcome('192.0.2.1', right, 'alias1')).toBe('right');
  const { items } = await store.listLockouts({ limit: 9 }, 0);
  expect(items.map(({ key }) => key)).toEqual(['username:uid=ld1,dc=example']);
});

test('four attempts on one account are in progress at a time, whatever the typed names', async () => {
  const { outcome } = await setUp('username');
  const { promise, resolve } = Promise.withResolvers<string>();
  const found = (n: number) => outcome('192.0.2.1', (_keys, as) => as('uid=ld1', () => promise), `alias${n}`);
  const first = [0, 1, 2, 3].map(found);
  expect(await Promise.race([found(4), ...first])).toMatch(/^PASSWORD_CHECK_BUSY/);
  resolve('right');
  expect(await Promise.all(first)).toEqual(Array(4).fill('right'));
});
