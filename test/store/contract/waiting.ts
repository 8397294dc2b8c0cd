import { describe, expect, test } from 'vitest';
import { certificateRow, event, requestRow, reservation, T0 } from '../rows.ts';
import type { NewDatabase } from './support.ts';

export function waitingContract(newDatabase: NewDatabase): void {
  describe('countWaiting', () => {
    test('counts requests that wait for a decision, by CA, and keys that are locked out at the moment', async () => {
      const store = await newDatabase().open();
      expect(await store.countWaiting(T0)).toEqual({ pending: [], lockouts: 0 });
      await store.queueRequest(requestRow({ id: 'one', recognition: 'one' }), null, []);
      await store.queueRequest(requestRow({ id: 'two', recognition: 'two' }), null, []);
      const decision = { id: 'two', status: 'approved', reason: null, decided_at: T0 } as const;
      expect(await store.decideRequest(decision, [])).toBe('decided');
      const policy = { max_failures: 0, failure_window: 300, lockout_duration: 900 };
      await store.recordFailure(['address:192.0.2.1'], policy, T0, [event('auth.otp', { outcome: 'failure' })]);
      const { ca } = requestRow({});
      expect(await store.countWaiting(T0 + 1)).toEqual({ pending: [{ ca, count: 1 }], lockouts: 1 });
      expect((await store.countWaiting(T0 + 901_000)).lockouts).toBe(0);
    });
  });

  test('countOfOtherCas counts the certificates that have not expired of CAs that are not named', async () => {
    const store = await newDatabase().open();
    const import_ = (serial: string, ca: string, not_after: number) =>
      store.importCertificate(certificateRow(reservation({ serial }), { ca, not_after }), []);
    for (const [n, ca] of ['a', 'b', 'b', 'c', 'd'].entries()) await import_(`0${n}`, ca, T0 + 1000);
    await import_('aa', 'c', T0 - 1);
    await import_('bb', 'expired', T0 - 1);
    expect(await store.countOfOtherCas(['a', 'd', 'e'], T0)).toEqual([
      { ca: 'b', count: 2 },
      { ca: 'c', count: 1 },
    ]);
    expect(await store.countOfOtherCas(['a', 'b', 'c', 'd'], T0)).toEqual([]);
  });
}
