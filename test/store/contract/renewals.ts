import { describe, expect, test } from 'vitest';
import { event, T0 } from '../rows.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';

export function renewalStoreContract(newDatabase: NewDatabase): void {
  describe('RenewalStore', () => {
    test('campaigns come back in the order of their start, are reported overdue once, and end once', async () => {
      const store = await newDatabase().open();
      const row = { begins: T0, due: T0 + 9, created_by: 'Ada', reason: null, explanation_url: null, overdue_at: null };
      const selection = { ca: 'devices', subject: 'press' };
      for (const id of ['one', 'two']) await store.startRenewal({ ...row, id, selection }, [event('renewal.started')]);
      expect(await store.listRenewals()).toEqual(['one', 'two'].map((id) => ({ ...row, id, selection })));
      expect(await store.noteOverdue('one', T0 + 10, [event('renewal.overdue')])).toBe(true);
      expect(await store.noteOverdue('one', T0 + 11, [event('renewal.overdue')])).toBe(false);
      expect(await store.listRenewals()).toMatchObject([{ overdue_at: T0 + 10 }, { overdue_at: null }]);
      expect([await store.endRenewal('one', []), await store.endRenewal('one', [])]).toEqual([true, false]);
      expect((await auditTypes(store)).filter((type) => type === 'renewal.overdue')).toHaveLength(1);
    });

    test('a certificate comes with the time of its issuance', async () => {
      const store = await newDatabase().open();
      const { serial } = await issue(store, { ca: 'devices', not_before: T0 - 9 });
      expect(await store.findIssued('devices', serial)).toMatchObject({ serial, issued_at: T0 + 1000 });
      expect(await store.findIssued('lab', serial)).toBeUndefined();
    });
  });

  describe('NotificationStore', () => {
    test('each receiver has a place in each chain; the first place is set once', async () => {
      const store = await newDatabase().open();
      await store.audit([event('service.start'), event('certificate.revoked', { serial: '01' })]);
      const chains = await store.auditChains();
      const [[node, newest] = ['', 0]] = chains;
      expect([chains.size, newest]).toEqual([1, expect.any(Number)]);
      await store.beginNotification('hook', chains);
      await store.beginNotification('hook', new Map([[node, 0]]));
      expect(await store.notificationPlaces('hook')).toEqual(chains);
      await store.advanceNotification('hook', node, newest - 1, [event('notification.failed')]);
      expect(await store.notificationPlaces('hook')).toEqual(new Map([[node, newest - 1]]));
      expect(await store.notificationPlaces('other')).toEqual(new Map());
      const lines = await store.auditLines(newest - 1, 9, node);
      expect(lines.map(({ seq }) => seq)).toEqual([newest, newest + 1]);
    });
  });
}
