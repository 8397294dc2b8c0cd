/**
 * One-time passwords: creation, lookup, checks and use.
 *
 * Longer than other files: it covers the whole life of a token.
 */
import { inspect } from 'node:util';
import { readFileSync } from 'node:fs';

import argon2 from 'argon2';
import bcrypt from 'bcrypt';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { HashingPool } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpPlugin, OtpService } from '../../../src/auth/otp/otp-service.ts';
import { generateToken, type HashSettings, TokenHasher } from '../../../src/auth/otp/token-hasher.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { tokenLookup } from '../../../src/store/lookup-key-file.ts';
import { attemptOn, INVALID, SETTINGS, setUpOtp, takeUse, WRONG } from './support.ts';

const ALGORITHMS = ['argon2id', 'bcrypt', 'sha256-hmac'] as const;
const ENCODED = {
  argon2id: /^\$argon2id\$v=19\$m=1024,p=1,t=2\$/,
  bcrypt: /^\$2b\$04\$/,
  'sha256-hmac': /^hmac-sha256:[0-9a-f]{64}$/,
};

describe('the token', () => {
  test.each([8, 16, 20, 72, 128])('otp.token_length %i counts the whole token, base62', (length) => {
    expect(generateToken(length)).toMatch(new RegExp(`^[0-9A-Za-z]{${length}}$`));
  });

  test('every character is about equally likely', () => {
    const counts = new Map<string, number>();
    for (const character of Array.from({ length: 500 }, () => generateToken(124)).join(''))
      counts.set(character, (counts.get(character) ?? 0) + 1);
    expect(counts.size).toBe(62);
    // 1,000 expected of each; ten standard deviations
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(320);
  });
});

describe.each(ALGORITHMS)('hash_algorithm %s', (hash_algorithm) => {
  test('a token is stored hashed, and authenticates', async () => {
    const { store, attempt, newToken } = await setUpOtp({ hash_algorithm });
    const { id, token } = await newToken();
    const row = await store.getOtp(id);
    expect(row?.hash).toMatch(ENCODED[hash_algorithm]);
    expect(JSON.stringify(row)).not.toContain(token);
    expect(await attempt(token)).toBe('ok');
    // whatever differs: one character, at the beginning too, or the length
    const other = (character: string): string => (character === 'a' ? 'b' : 'a');
    for (const i of [0, 4, 5, 12, 19])
      expect(
        await attempt(token.slice(0, i) + other(token.charAt(i)) + token.slice(i + 1), { address: `192.0.2.${i}` }),
      ).toBe(INVALID);
    const swapped = (text: string): string =>
      text.replaceAll(/[a-z]/gi, (letter) =>
        letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
      );
    for (const wrong of [`${token}a`, token.slice(0, 19), swapped(token), ''])
      expect(await attempt(wrong, { address: '192.0.2.77' })).toBe(INVALID);
  });

  test.each(ALGORITHMS)('its tokens survive a change to %s', async (changed) => {
    const { store, clock, pool, newToken } = await setUpOtp({ hash_algorithm });
    const { token } = await newToken();
    const settings = { ...SETTINGS, hash_algorithm: changed, token_length: 32 };
    const attempt = attemptOn(await OtpService.create(store, settings, pool, clock.read), clock);
    expect(await attempt(token)).toBe('ok');
    expect(await attempt(WRONG)).toBe(INVALID);
  });
});

test('a token that is found, but has the hash of another one, is refused', async () => {
  const { store, attempt, newToken } = await setUpOtp();
  const [{ id }, { token }] = [await newToken(), await newToken()];
  const [row, found] = [await store.getOtp(id), await store.findOtp(tokenLookup(SETTINGS.lookupKey, token))];
  if (row === undefined || found === undefined) throw new Error('no token');
  vi.spyOn(store, 'findOtp').mockResolvedValue({ ...found, hash: row.hash });
  expect(await attempt(token)).toBe(INVALID);
});

test('the token and the lockout are asked for together; after a hash that takes time the lockout is asked again', async () => {
  for (const [hash_algorithm, asked] of [
    ['sha256-hmac', ['findOtp', 'lockedUntil during findOtp']],
    ['argon2id', ['findOtp', 'lockedUntil during findOtp', 'lockedUntil']],
  ] as const) {
    const { store, attempt, newToken } = await setUpOtp({ hash_algorithm });
    const { token } = await newToken();
    const calls: string[] = [];
    const underWay: string[] = [];
    const noting = <A extends unknown[], R>(name: string, call: (...args: A) => Promise<R>) =>
      vi.fn(async (...args: A) => {
        calls.push(underWay.length === 0 ? name : `${name} during ${underWay.join(', ')}`);
        underWay.push(name);
        try {
          return await call(...args);
        } finally {
          underWay.splice(underWay.indexOf(name), 1);
        }
      });
    store.findOtp = noting('findOtp', store.findOtp.bind(store));
    store.lockedUntil = noting('lockedUntil', store.lockedUntil.bind(store));
    expect(await attempt(token)).toBe('ok');
    expect(calls).toEqual(asked);
  }
});

test('an attempt that may wait for another one asks for the lockout first, and again with the token', async () => {
  const { store, attempt, newToken } = await setUpOtp({ hash_algorithm: 'sha256-hmac' });
  const { token } = await newToken();
  const asked = vi.spyOn(store, 'lockedUntil');
  expect(await Promise.all([attempt(token), attempt(token)])).toEqual(['ok', 'ok']);
  expect(asked).toHaveBeenCalledTimes(3);
});

describe('an attempt costs one hash with the same parameters, whatever the token', () => {
  test.each([
    ['argon2id', () => vi.spyOn(argon2, 'verify'), 0],
    ['bcrypt', () => vi.spyOn(bcrypt, 'compare'), 1],
  ] as const)('%s', async (hash_algorithm, spyOn, position) => {
    const { store, clock, newToken, attempt } = await setUpOtp({ hash_algorithm });
    const live = await newToken();
    const revoked = await newToken();
    await store.revokeOtp(revoked.id, clock.now, []);
    const expired = await newToken({ expires_at: clock.now + 1000 });
    const elsewhere = await newToken({ ca: 'lab' });
    const consumed = await newToken();
    await takeUse(store, consumed.id, clock);
    clock.pass(2);
    const wrongSecret = live.token.slice(0, 5) + WRONG.slice(5);
    const passwords = [live, revoked, expired, elsewhere, consumed].map(({ token }) => token);

    const spy = spyOn();
    onTestFinished(() => spy.mockRestore());
    for (const [i, password] of [...passwords, wrongSecret, WRONG].entries()) {
      await attempt(password, { address: `192.0.2.${i}` });
      expect(spy).toHaveBeenCalledTimes(i + 1);
    }
    for (const call of spy.mock.calls) expect(call[position]).toMatch(ENCODED[hash_algorithm]);
    // what can be no token is refused without any
    expect(await attempt('not in the format', { address: '192.0.2.99' })).toBe(INVALID);
    expect(spy).toHaveBeenCalledTimes(passwords.length + 2);
  });
});

describe('the state of a token', () => {
  test.each<[string, (setup: Awaited<ReturnType<typeof setUpOtp>>) => Promise<string>, string]>([
    ['usable', async ({ newToken, attempt }) => attempt((await newToken()).token), 'ok'],
    [
      'expired this millisecond',
      async ({ newToken, attempt, clock }) => {
        const { token } = await newToken({ expires_at: clock.now + 1000 });
        clock.pass(1);
        return attempt(token);
      },
      INVALID,
    ],
    [
      'about to expire',
      async ({ newToken, attempt, clock }) => {
        const { token } = await newToken({ expires_at: clock.now + 1001 });
        clock.pass(1);
        return attempt(token);
      },
      'ok',
    ],
    [
      'revoked',
      async ({ newToken, attempt, store, clock }) => {
        const { token, id } = await newToken();
        await store.revokeOtp(id, clock.now, []);
        return attempt(token);
      },
      INVALID,
    ],
    [
      'consumed',
      async ({ newToken, attempt, store, clock }) => {
        const { token, id } = await newToken();
        await takeUse(store, id, clock);
        return attempt(token);
      },
      'consumed',
    ],
    [
      'one of two uses taken',
      async ({ newToken, attempt, store, clock }) => {
        const { token, id } = await newToken({ max_uses: 2 });
        await takeUse(store, id, clock);
        return attempt(token);
      },
      'ok',
    ],
    ['limited to this CA', async ({ newToken, attempt }) => attempt((await newToken({ ca: 'devices' })).token), 'ok'],
    ['limited to another CA', async ({ newToken, attempt }) => attempt((await newToken({ ca: 'lab' })).token), INVALID],
    [
      'consumed and expired',
      async ({ newToken, attempt, store, clock }) => {
        const { token, id } = await newToken({ expires_at: clock.now + 1000 });
        await takeUse(store, id, clock);
        clock.pass(2);
        return attempt(token);
      },
      INVALID,
    ],
  ])('%s', async (_, run, expected) => {
    expect(await run(await setUpOtp())).toBe(expected);
  });

  test('the identity names the token and its client, and carries the password for serverkeygen', async () => {
    const { service, newToken, clock } = await setUpOtp();
    const { id, token } = await newToken();
    const identity = await service.authenticate(
      { username: 'anyone', password: token },
      { address: '192.0.2.1', caLabel: 'devices', now: clock.now },
    );
    expect(identity).toMatchObject({
      method: 'otp',
      requester: `otp:${id}`,
      display: 'device-1',
      otp_id: id,
      client_id: 'device-1',
      usable: true,
    });
    expect(identity.password.toString()).toBe(token);
  });
});

describe('secrets', () => {
  test('no token is in the store, the audit file, or an error', async () => {
    const { service, newToken, attempt, clock, paths, store } = await setUpOtp({ hash_algorithm: 'argon2id' });
    const { token } = await newToken({ expires_at: clock.now + 1000 });
    expect(await attempt(token, { username: token })).toBe('ok');
    clock.pass(2);
    const late = { address: '192.0.2.1', caLabel: 'devices', now: clock.now };
    const failure: unknown = await service
      .authenticate({ username: token, password: token }, late)
      .then((identity) => service.refuseUnusable(identity, late))
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(EstuaryError);
    expect(inspect(failure, { depth: 10 })).not.toContain(token);
    await store.close();
    for (const file of [paths.path, paths.auditFile]) expect(readFileSync(file).includes(token)).toBe(false);
  });

  test('no part of a token is in the store', async () => {
    const { store, newToken, paths } = await setUpOtp({ hash_algorithm: 'argon2id', token_length: 24 });
    const tokens = await Promise.all(Array.from({ length: 5 }, async () => (await newToken()).token));
    await store.close();
    const database = readFileSync(paths.path);
    const parts = tokens.flatMap((token) => Array.from({ length: 19 }, (_, i) => token.slice(i, i + 6)));
    expect(parts.filter((part) => database.includes(part))).toEqual([]);
  });
});

describe('the hashing pool', () => {
  /** Work that is held until let go. */
  function held(): { work: (waited: boolean) => Promise<boolean>; letGo: () => void } {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    return { work: (waited) => promise.then(() => waited), letGo: () => resolve(undefined) };
  }

  test('beyond its bounds: 503 PASSWORD_CHECK_BUSY with Retry-After, and afterwards it works again', async () => {
    const pool = new HashingPool({ concurrency: 2, queue: 3, retryAfter: 7 });
    const gate = held();
    const running = Array.from({ length: 5 }, () => pool.run(gate.work));
    expect(pool.waiting).toBe(3);
    await expect(pool.run(gate.work)).rejects.toMatchObject({
      status: 503,
      code: 'PASSWORD_CHECK_BUSY',
      retryAfter: 7,
    });
    gate.letGo();
    expect(await Promise.all(running)).toEqual([false, false, true, true, true]);
    expect(await pool.run(gate.work)).toBe(false);
  });

  test('never more than `concurrency` at a time, in order, an urgent one first', async () => {
    const pool = new HashingPool({ concurrency: 1, queue: 8, retryAfter: 1 });
    const order: string[] = [];
    let active = 0;
    const job = (name: string) => async (): Promise<void> => {
      expect(++active).toBe(1);
      order.push(name);
      await new Promise((resolve) => setImmediate(resolve));
      active--;
    };
    await Promise.all([
      pool.run(job('a')),
      pool.run(job('b')),
      pool.run(job('c')),
      pool.run(job('admin'), { urgent: true }),
    ]);
    expect(order).toEqual(['a', 'admin', 'b', 'c']);
  });

  test('work that throws frees its place', async () => {
    const pool = new HashingPool({ concurrency: 1, queue: 8, retryAfter: 1 });
    const failing = Array.from({ length: 4 }, () => pool.run(() => Promise.reject(new Error('no'))));
    const outcomes = await Promise.allSettled(failing);
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    expect(await pool.run((waited) => Promise.resolve(waited))).toBe(false);
  });

  test('a flood of passwords is bounded; an administrator still makes tokens', async () => {
    const { attempt, newToken } = await setUpOtp({ hash_algorithm: 'argon2id' }, 1, 2);
    const flood = Array.from({ length: 20 }, (_, i) => attempt(WRONG, { address: `198.51.100.${i}` }));
    const { token } = await newToken();
    const answers = await Promise.all(flood);
    expect(new Set(answers)).toEqual(new Set([INVALID, 'too many passwords to check; try again later']));
    expect(await attempt(token)).toBe('ok');
  });

  test('an HMAC does not queue', async () => {
    const { pool, attempt, newToken } = await setUpOtp({ hash_algorithm: 'sha256-hmac' }, 1, 0);
    const { token } = await newToken();
    const gate = held();
    const busy = pool.run(gate.work);
    expect(await attempt(token)).toBe('ok');
    gate.letGo();
    await busy;
  });
});

describe('sha256-hmac', () => {
  const settings = (hmacKey: Buffer | undefined): HashSettings => ({ ...SETTINGS, hmacKey });

  test('without a key the service does not start', async () => {
    await expect(TokenHasher.create(settings(undefined))).rejects.toThrow(
      expect.objectContaining({ code: 'OTP_HMAC_KEY_MISSING' }),
    );
  });

  test('another key, or a key no longer configured, knows none of the tokens', async () => {
    const hasher = await TokenHasher.create(settings(Buffer.alloc(32, 1)));
    const hash = await hasher.hash('Token0Token0');
    expect(await hasher.verify(hash, 'Token0Token0')).toBe(true);
    const changed = await TokenHasher.create(settings(Buffer.alloc(32, 2)));
    expect(await changed.verify(hash, 'Token0Token0')).toBe(false);
    const without = await TokenHasher.create({ ...settings(undefined), hash_algorithm: 'argon2id' });
    expect(await without.verify(hash, 'Token0Token0')).toBe(false);
  });
});

test('the estimate for no tokens is no time, and grows with their number', async () => {
  const { service } = await setUpOtp({ hash_algorithm: 'bcrypt' });
  expect(await service.estimate(0)).toBe(0);
  expect(await service.estimate(1)).toBeGreaterThan(0);
});

/** A one-time password comes in HTTP Basic, or in the request (RFC 7894 §3.1); HTTP Basic counts first. */
test('the password in the request authenticates without HTTP Basic, and only then', async () => {
  const { service, newToken, clock } = await setUpOtp();
  const { token } = await newToken();
  const plugin = new OtpPlugin(service);
  const outcome = (password: string | undefined, authorization?: string): Promise<string | undefined> =>
    plugin
      .authenticate(
        {
          authorization,
          address: '192.0.2.1',
          peerCertificate: undefined,
          peerIntermediates: [],
          otpChallenge: () => Promise.resolve(password === undefined ? undefined : { username: '', password }),
        },
        {
          operation: 'simpleenroll',
          caLabel: 'devices',
          certificateOnly: false,
          expiredGraceSeconds: 0,
          now: clock.now,
        },
      )
      .then(
        (identity) => identity?.client_id,
        (error: unknown) => (error instanceof EstuaryError ? error.code : String(error)),
      );
  expect(await outcome(token)).toBe('device-1');
  expect(await outcome(token, 'Bearer x')).toBe('device-1');
  expect(await outcome(undefined)).toBeUndefined();
  expect(await outcome(token, `Basic ${Buffer.from('device:wrong').toString('base64')}`)).toBe('OTP_INVALID');
});
