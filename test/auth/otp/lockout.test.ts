import { describe, expect, test } from 'vitest';

import { EstuaryError } from '../../../src/errors.ts';
import { AttemptLimiter } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpService } from '../../../src/auth/otp/otp-service.ts';
import { opened } from '../../store/support.ts';
import { attemptOn, INVALID, LOCKED, SETTINGS, setUpOtp, takeUse, WRONG, type OtpSetup } from './support.ts';

async function fail({ attempt }: OtpSetup, times: number): Promise<string[]> {
  const answers: string[] = [];
  for (let i = 0; i < times; i++) answers.push(await attempt(WRONG));
  return answers;
}

describe('lockout with max_failures = 5, failure_window = 300, lockout_duration = 900', () => {
  test('the sixth failure starts it, and still answers as the five before', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    expect(await fail(setup, 6)).toEqual(Array(6).fill(INVALID));
    expect(await fail(setup, 2)).toEqual([LOCKED, LOCKED]);
    expect(await setup.attempt(token)).toBe(LOCKED);
  });

  test('five failures do not, and the right password then gets in', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    await fail(setup, 5);
    expect(await setup.attempt(token)).toBe('ok');
  });

  test('a valid token alone clears nothing, even if it is repeated', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken({ max_uses: 9 });
    await fail(setup, 5);
    for (let i = 0; i < 3; i++) expect(await setup.attempt(token)).toBe('ok');
    expect(await fail(setup, 1)).toEqual([INVALID]);
    expect(await setup.attempt(token)).toBe(LOCKED);
  });

  test('even the right password is refused until it ends, with the seconds left', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    await fail(setup, 6);
    const secondsLeft = async (): Promise<number | undefined> =>
      setup.service
        .authenticate(
          { username: '', password: token },
          { address: '192.0.2.1', caLabel: 'devices', now: setup.clock.now },
        )
        .then(
          () => undefined,
          (error: unknown) => (error instanceof EstuaryError ? error.retryAfter : undefined),
        );
    expect(await secondsLeft()).toBe(900);
    setup.clock.pass(898.5);
    expect(await secondsLeft()).toBe(2);
    setup.clock.pass(1.4);
    expect(await secondsLeft()).toBe(1);
    setup.clock.pass(0.1);
    expect(await setup.attempt(token)).toBe('ok');
  });

  test('attempts while locked out do not prolong it', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    await fail(setup, 6);
    for (let i = 0; i < 8; i++) {
      setup.clock.pass(100);
      expect(await setup.attempt(WRONG)).toBe(LOCKED);
    }
    setup.clock.pass(100);
    expect(await setup.attempt(token)).toBe('ok');
  });

  test('after it the count starts anew', async () => {
    const setup = await setUpOtp();
    await fail(setup, 6);
    setup.clock.pass(900);
    expect(await fail(setup, 6)).toEqual(Array(6).fill(INVALID));
    expect(await setup.attempt(WRONG)).toBe(LOCKED);
  });

  test('failures older than the window do not count', async () => {
    const setup = await setUpOtp();
    await fail(setup, 5);
    setup.clock.pass(300);
    expect(await fail(setup, 6)).toEqual(Array(6).fill(INVALID));
    expect(await setup.attempt(WRONG)).toBe(LOCKED);
  });

  test('it survives a restart', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    await fail(setup, 6);
    await setup.store.close();
    const store = await opened(setup.paths, setup.clock.read);
    const restarted = await OtpService.create(store, SETTINGS, setup.pool, setup.clock.read);
    const attempt = attemptOn(restarted, setup.clock);
    expect(await attempt(token)).toBe(LOCKED);
    setup.clock.pass(900);
    expect(await attempt(token)).toBe('ok');
  });

  test('an administrator can end it', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    await fail(setup, 6);
    const [lockout] = (await setup.store.listLockouts({ limit: 10 }, setup.clock.now)).items;
    expect(lockout).toMatchObject({ key: 'address:192.0.2.1', scope: 'address', failures: 6 });
    await setup.store.deleteLockout('address:192.0.2.1', []);
    expect(await setup.attempt(token)).toBe('ok');
  });

  test('an expired, a revoked and a consumed token count as failures, right as they are', async () => {
    const setup = await setUpOtp();
    const { store, clock } = setup;
    const expired = await setup.newToken({ expires_at: clock.now + 1000 });
    const revoked = await setup.newToken();
    const consumed = await setup.newToken();
    await store.revokeOtp(revoked.id, clock.now, []);
    expect(await takeUse(store, consumed.id, clock)).toBe('reserved');
    clock.pass(2);
    for (const { token } of [expired, revoked, consumed, expired, revoked, consumed]) {
      const attempt = { address: '192.0.2.1', caLabel: 'devices', now: clock.now };
      const identity = await setup.service.authenticate({ username: '', password: token }, attempt);
      expect([identity.usable, identity.dead]).toEqual([
        false,
        token === expired.token ? 'has expired' : token === revoked.token ? 'is revoked' : undefined,
      ]);
      await expect(setup.service.refuseUnusable(identity, attempt)).rejects.toMatchObject({
        status: 401,
        message: INVALID,
      });
    }
    expect(await setup.attempt(WRONG)).toBe(LOCKED);
  });

  test('polling with a consumed token neither counts nor clears', async () => {
    const setup = await setUpOtp();
    const { token, id } = await setup.newToken();
    await takeUse(setup.store, id, setup.clock);
    await fail(setup, 3);
    for (let i = 0; i < 10; i++) expect(await setup.attempt(token)).toBe('consumed');
    expect(await fail(setup, 3)).toEqual(Array(3).fill(INVALID));
    expect(await setup.attempt(token)).toBe(LOCKED);
  });
});

describe('lockout_scope', () => {
  test('address: another address is not concerned, whatever the username', async () => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    for (let i = 0; i < 6; i++) await setup.attempt(WRONG, { username: `u${i}` });
    expect(await setup.attempt(token, { username: 'fresh' })).toBe(LOCKED);
    expect(await setup.attempt(token, { address: '192.0.2.2' })).toBe('ok');
  });

  test('username: another name is not concerned, whatever the address', async () => {
    const setup = await setUpOtp({ lockout_scope: 'username' });
    const { token } = await setup.newToken();
    for (let i = 0; i < 6; i++) await setup.attempt(WRONG, { address: `192.0.2.${i}` });
    expect(await setup.attempt(token, { address: '192.0.2.99' })).toBe(LOCKED);
    expect(await setup.attempt(token, { username: 'other' })).toBe('ok');
  });

  test('both: either alone is enough', async () => {
    const setup = await setUpOtp({ lockout_scope: 'both' });
    const { token } = await setup.newToken({ max_uses: 5 });
    await fail(setup, 6);
    expect(await setup.attempt(token, { username: 'other' })).toBe(LOCKED);
    expect(await setup.attempt(token, { address: '192.0.2.2' })).toBe(LOCKED);
    expect(await setup.attempt(token, { address: '192.0.2.2', username: 'other' })).toBe('ok');
  });

  test.each([
    ['an IPv4-mapped address is its IPv4 address', '::ffff:192.0.2.1', '192.0.2.1', true],
    ['addresses of one IPv6 /64 are one client', '2001:db8:0:1::1', '2001:db8:0:1:ffff::2', true],
    ['addresses of two IPv6 /64 are two', '2001:db8:0:1::1', '2001:db8:0:2::1', false],
    ['a zone is left out', 'fe80::1%eth0', 'fe80::1', true],
    ['neighbouring IPv4 addresses are two', '192.0.2.1', '192.0.2.2', false],
  ])('%s', async (_, failing, other, same) => {
    const setup = await setUpOtp();
    const { token } = await setup.newToken();
    for (let i = 0; i < 6; i++) await setup.attempt(WRONG, { address: failing });
    expect(await setup.attempt(token, { address: other })).toBe(same ? LOCKED : 'ok');
  });

  test.each([
    ['a very long name', 'x'.repeat(3000)],
    ['a name with control characters', 'a\nb'],
    ['a name of the form of a token', 'Ab3Ab3Ab3Ab3Ab3Ab3Ab'],
  ])('username: %s is kept as a hash', async (_, username) => {
    const setup = await setUpOtp({ lockout_scope: 'username' });
    for (let i = 0; i < 6; i++) await setup.attempt(WRONG, { username });
    expect(await setup.attempt(WRONG, { username })).toBe(LOCKED);
    const [lockout] = (await setup.store.listLockouts({ limit: 10 }, setup.clock.now)).items;
    expect(lockout?.key).toMatch(/^username:sha256-[0-9a-f]{16}$/);
    expect(JSON.stringify(await setup.store.listAudit({ limit: 100 }))).not.toContain(username);
  });
});

describe('parallel attempts', () => {
  test.each([
    ['argon2id', 'address'],
    ['sha256-hmac', 'address'],
    ['sha256-hmac', 'both'],
  ] as const)('forty wrong ones at once start a lockout as six in a row do (%s, %s)', async (hash_algorithm, scope) => {
    const setup = await setUpOtp({ hash_algorithm, lockout_scope: scope });
    const { token } = await setup.newToken();
    const answers = await Promise.all(Array.from({ length: 40 }, () => setup.attempt(WRONG)));
    expect(new Set(answers)).toEqual(new Set([INVALID, LOCKED]));
    const wrong = answers.filter((answer) => answer === INVALID).length;
    // two are under way at a time: one of them may have begun before the other's failure was counted
    expect(wrong).toBeGreaterThanOrEqual(6);
    expect(wrong).toBeLessThanOrEqual(7);
    expect(await setup.attempt(token)).toBe(LOCKED);
  });

  test('a right one among wrong ones gets in or is locked out, never anything else', async () => {
    const setup = await setUpOtp({ hash_algorithm: 'argon2id' });
    const { token } = await setup.newToken();
    const guesses = Array.from({ length: 20 }, (_, i) => setup.attempt(i === 12 ? token : WRONG));
    const answers = await Promise.all(guesses);
    expect(['ok', LOCKED]).toContain(answers[12]);
    answers.splice(12, 1);
    expect(answers.every((answer) => answer === INVALID || answer === LOCKED)).toBe(true);
  });
});

describe('the gate before the checks', () => {
  test('lets a few attempts of a key through, holds a bounded number, and forgets the key afterwards', async () => {
    const gate = new AttemptLimiter({ concurrency: 2, queue: 3 }, 9);
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const work = (waited: boolean): Promise<boolean> => promise.then(() => waited);
    const running = Array.from({ length: 5 }, () => gate.run(['a', 'b'], work));
    await expect(gate.run(['a', 'c'], work)).rejects.toMatchObject({ status: 503, retryAfter: 9 });
    const other = gate.run(['c'], work);
    resolve(undefined);
    expect(await Promise.all(running)).toEqual([false, false, true, true, true]);
    expect(await other).toBe(false);
    expect(gate.keys).toBe(0);
  });

  test('work that throws makes room', async () => {
    const gate = new AttemptLimiter({ concurrency: 1, queue: 9 }, 9);
    const failing = Array.from({ length: 5 }, () => gate.run(['a'], () => Promise.reject(new Error('no'))));
    expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    expect(gate.keys).toBe(0);
  });
});

describe('audit', () => {
  test('failures and the lockout are recorded, attempts during it once a minute', async () => {
    const setup = await setUpOtp();
    await fail(setup, 20);
    setup.clock.pass(61);
    await fail(setup, 5);
    const { items } = await setup.store.listAudit({ limit: 100 });
    expect(items.map(({ type, detail }) => [type, detail])).toEqual([
      ...Array<unknown>(6).fill(['auth.otp', 'unknown token']),
      ['lockout.started', 'address: 6 failures within 300 s, locked out for 900 s'],
      ['auth.otp', 'locked out'],
      ['auth.otp', 'locked out'],
    ]);
    expect(items[0]).toMatchObject({ outcome: 'failure', subject: 'device', address: '192.0.2.1', ca: 'devices' });
  });
});
