/** Lockout keys, how often an attempt during a lockout is recorded, and the form of claimed names. */
import { expect, test } from 'vitest';
import type { AuditEvent } from '../../src/audit/event.ts';
import { Lockout, presentableName, type LockoutSettings } from '../../src/auth/lockout.ts';
import { opened, T0, temporaryPaths } from '../store/support.ts';

const MINUTE = 60_000;
const SETTINGS: LockoutSettings = {
  lockout_scope: 'both',
  max_failures: 5,
  failure_window: 300,
  lockout_duration: 900,
};
const EVENT: AuditEvent = { type: 'auth.otp', outcome: 'failure', address: '192.0.2.1' };

test.each<[LockoutSettings['lockout_scope'], readonly string[]]>([
  ['address', ['address:192.0.2.1']],
  ['username', ['username:device']],
  ['both', ['address:192.0.2.1', 'username:device']],
])('lockout_scope = "%s" counts on %s', async (lockout_scope, keys) => {
  const lockout = new Lockout(await opened(temporaryPaths()), { ...SETTINGS, lockout_scope });
  expect(lockout.keys('192.0.2.1', { kind: 'username', name: 'device' })).toEqual(keys);
});

/** A lockout in which every key is locked out for ten minutes, and what it records. */
function lockedOut() {
  const records: AuditEvent[] = [];
  const store = {
    lockedUntil: (_: readonly string[], now: number) => Promise.resolve(now + 600_000),
    audit: (events: readonly AuditEvent[]) => {
      records.push(...events);
      return Promise.resolve();
    },
  };
  const lockout = new Lockout(store as unknown as ConstructorParameters<typeof Lockout>[0], SETTINGS);
  const attempt = (key: string, now: number): Promise<void> =>
    expect(lockout.check([key], now, EVENT)).rejects.toMatchObject({ code: 'LOCKED_OUT', retryAfter: 600 });
  return { records, attempt };
}

test('attempts during a lockout are recorded once a minute for each key', async () => {
  const { records, attempt } = lockedOut();
  for (const at of [0, 1, MINUTE - 1]) await attempt('one', T0 + at);
  expect(records).toEqual([{ ...EVENT, detail: 'locked out' }]);
  await attempt('two', T0 + MINUTE - 1);
  expect(records).toHaveLength(2);
  await attempt('one', T0 + MINUTE);
  expect(records).toHaveLength(3);
  await attempt('one', T0 + MINUTE + 1);
  expect(records).toHaveLength(3);
});

test('1,000 keys are remembered; one more forgets the key that was recorded longest ago', async () => {
  const { records, attempt } = lockedOut();
  for (let n = 0; n < 1000; n++) await attempt(`key ${n}`, T0);
  // Recorded again, so it is not the oldest any more.
  await attempt('key 0', T0 + MINUTE);
  expect(records).toHaveLength(1001);
  for (const known of ['key 0', 'key 1', 'key 999']) await attempt(known, T0 + MINUTE - 1);
  expect(records).toHaveLength(1001);
  await attempt('key 1000', T0 + MINUTE - 1);
  await attempt('key 0', T0 + MINUTE + 1);
  expect(records).toHaveLength(1002);
  await attempt('key 1', T0 + MINUTE - 1);
  expect(records).toHaveLength(1003);
});

test('a claimed name is itself, or a hash if it is long, has control characters or lone surrogates, or has the form of a token', () => {
  const LENGTH = 26;
  const hash = /^sha256-[0-9a-f]{16}$/;
  const token = 'a1'.repeat(13);
  for (const name of ['', 'device-1', 'x'.repeat(128), `${token}x`, token.slice(1), `${token.slice(1)}-`])
    expect(presentableName(name, LENGTH)).toBe(name);
  for (const name of [token, 'x'.repeat(129), 'a\nb', 'a\u0000b', 'a\u2028b', 'a\u2029b', 'a\ud800'])
    expect(presentableName(name, LENGTH)).toMatch(hash);
  expect(presentableName('a\nb', LENGTH)).not.toBe(presentableName('a\nc', LENGTH));
});
