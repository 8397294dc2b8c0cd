import { describe, expect, test } from 'vitest';
import { certificateRow, event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, type NewDatabase } from './support.ts';

const POLICY = { max_failures: 5, failure_window: 300, lockout_duration: 900 };
const KEY = 'address:192.0.2.1';
const FAILED = [event('auth.otp', { outcome: 'failure' })];
const PAGE = { limit: 10 };

export function lockoutStoreContract(newDatabase: NewDatabase): void {
  describe('LockoutStore', () => {
    test('more than max_failures within failure_window lock out for lockout_duration; the sixth of five does it', async () => {
      const store = await newDatabase().open();
      for (let second = 1; second <= 5; second++) await store.recordFailure([KEY], POLICY, T0 + second * 1000, FAILED);
      expect(await store.lockedUntil([KEY], T0 + 5000)).toBeUndefined();
      await store.recordFailure([KEY], POLICY, T0 + 6000, FAILED);
      expect(await store.lockedUntil([KEY], T0 + 6000)).toBe(T0 + 906_000);
      expect(await store.lockedUntil([KEY], T0 + 905_999)).toBe(T0 + 906_000);
      expect(await store.lockedUntil([KEY], T0 + 906_000)).toBeUndefined();
      expect(await auditTypes(store)).toEqual([...Array<string>(6).fill('auth.otp'), 'lockout.started']);
    });

    test('the record lockout.started names the address, or the username as subject', async () => {
      const store = await newDatabase().open();
      const policy = { ...POLICY, max_failures: 0 };
      await store.recordFailure([KEY, 'username:device-1'], policy, T0, []);
      expect((await store.listAudit(PAGE)).items).toMatchObject([
        { type: 'lockout.started', address: '192.0.2.1' },
        { type: 'lockout.started', subject: 'device-1' },
      ]);
    });

    test('the window slides: failures older than failure_window do not count', async () => {
      const store = await newDatabase().open();
      for (let n = 0; n < 30; n++) await store.recordFailure([KEY], POLICY, T0 + n * 60_000, FAILED);
      expect(await store.lockedUntil([KEY], T0 + 30 * 60_000)).toBeUndefined();
      for (let n = 0; n < 2; n++) await store.recordFailure([KEY], POLICY, T0 + 29 * 60_000 + n + 1, FAILED);
      expect(await store.lockedUntil([KEY], T0 + 29 * 60_000 + 2)).toBeDefined();
    });

    test('attempts while locked out do not prolong it, and leave no count behind', async () => {
      const store = await newDatabase().open();
      for (let n = 0; n < 6; n++) await store.recordFailure([KEY], POLICY, T0, FAILED);
      for (let n = 0; n < 20; n++) await store.recordFailure([KEY], POLICY, T0 + 899_000, FAILED);
      expect(await store.lockedUntil([KEY], T0 + 899_000)).toBe(T0 + 900_000);
      for (let n = 0; n < 5; n++) await store.recordFailure([KEY], POLICY, T0 + 901_000, FAILED);
      expect(await store.lockedUntil([KEY], T0 + 901_000)).toBeUndefined();
    });

    test('a success clears no failures: they count for their window', async () => {
      const store = await newDatabase().open();
      for (let n = 0; n < 5; n++) await store.recordFailure([KEY], POLICY, T0, FAILED);
      const otp = otpRow();
      await store.insertOtp(otp, []);
      const intent = reservation({ otp_id: otp.id });
      expect(await store.reserve(intent, [])).toBe('reserved');
      await store.recordCertificate(certificateRow(intent), []);
      await store.queueRequest(requestRow(), null, []);
      await store.recordFailure([KEY], POLICY, T0, FAILED);
      expect(await store.lockedUntil([KEY], T0)).toBe(T0 + 900_000);
    });

    test('a lockout and a count survive a restart', async () => {
      const database = newDatabase();
      const before = await database.open();
      for (let n = 0; n < 6; n++) await before.recordFailure([KEY], POLICY, T0, FAILED);
      for (let n = 0; n < 5; n++) await before.recordFailure(['address:192.0.2.2'], POLICY, T0, FAILED);
      await before.close();
      const after = await database.open();
      expect(await after.lockedUntil([KEY], T0)).toBe(T0 + 900_000);
      await after.recordFailure(['address:192.0.2.2'], POLICY, T0 + 1, FAILED);
      expect(await after.lockedUntil(['address:192.0.2.2'], T0 + 1)).toBe(T0 + 900_001);
    });

    test('an administrator sees who is locked out, and lets one in again', async () => {
      const store = await newDatabase().open();
      const policy = { ...POLICY, max_failures: 0 };
      await store.recordFailure(['username:b', KEY, 'identification:c'], policy, T0, []);
      const first = await store.listLockouts({ limit: 2 }, T0);
      expect(first.items).toEqual([
        { key: KEY, scope: 'address', failures: 1, locked_until: T0 + 900_000 },
        { key: 'identification:c', scope: 'identification', failures: 1, locked_until: T0 + 900_000 },
      ]);
      const second = await store.listLockouts({ limit: 2, cursor: first.next_cursor ?? undefined }, T0);
      expect(second.items.map((row) => row.key)).toEqual(['username:b']);
      expect(second.next_cursor).toBeNull();
      expect((await store.listLockouts(PAGE, T0 + 900_000)).items).toEqual([]);

      expect(await store.deleteLockout(KEY, [event('lockout.cleared')])).toBe(true);
      expect(await store.deleteLockout(KEY, [event('lockout.cleared')])).toBe(false);
      expect(await store.lockedUntil([KEY], T0)).toBeUndefined();
      expect((await auditTypes(store)).filter((type) => type === 'lockout.cleared')).toHaveLength(1);
    });

    test('50 parallel failures start one lockout', async () => {
      const store = await newDatabase().open();
      await Promise.all(Array.from({ length: 50 }, () => store.recordFailure([KEY], POLICY, T0, FAILED)));
      expect((await auditTypes(store)).filter((type) => type === 'lockout.started')).toHaveLength(1);
    });
  });
}
