import { describe, expect, test } from 'vitest';
import type { AuditFilter } from '../../../src/store/audit-store.ts';
import { event, otpRow } from '../rows.ts';
import { auditTypes, type NewDatabase } from './support.ts';

export function auditStoreContract(newDatabase: NewDatabase): void {
  describe('AuditStore', () => {
    test('GET /admin/audit: pages, a type, a time, all together', async () => {
      let now = 0;
      const store = await newDatabase().open(() => now);
      for (now = 1000; now <= 6000; now += 1000)
        await store.audit([event(now % 2000 === 0 ? 'auth.otp' : 'auth.mtls')]);
      const seqs = async (filter: Partial<AuditFilter>): Promise<number[]> =>
        (await store.listAudit({ limit: 100, ...filter })).items.map((record) => record.seq);
      expect(await seqs({})).toEqual([1, 2, 3, 4, 5, 6]);
      expect(await seqs({ type: 'auth.otp' })).toEqual([2, 4, 6]);
      expect(await seqs({ since: 3000 })).toEqual([3, 4, 5, 6]);
      expect(await seqs({ since: 3001, type: 'auth.mtls' })).toEqual([5]);
      const page = await store.listAudit({ limit: 2, type: 'auth.otp' });
      expect(page.items.map((record) => record.seq)).toEqual([2, 4]);
      expect(await seqs({ type: 'auth.otp', cursor: page.next_cursor ?? undefined })).toEqual([6]);
    });

    test('records of one call are numbered and chained in its order, at the time of the call', async () => {
      const store = await newDatabase().open(() => Date.UTC(2026, 0, 2));
      await store.audit([event('service.start'), event('admin.access', { subject: 'CN=admin' })]);
      const { items } = await store.listAudit({ limit: 10 });
      expect(items).toMatchObject([
        { seq: 1, time: '2026-01-02T00:00:00.000Z', type: 'service.start', prev_hash: '0'.repeat(64) },
        { seq: 2, type: 'admin.access', subject: 'CN=admin', prev_hash: items[0]?.hash },
      ]);
    });

    test('stores on one database that write at once make chains without a gap: one, or each of its node', async () => {
      const database = newDatabase();
      const stores = [await database.open(), await database.open()];
      await Promise.all(
        Array.from({ length: 20 }, async (_, n) => {
          for (const store of stores) await store.audit([event(n % 2 === 0 ? 'auth.otp' : 'auth.mtls')]);
        }),
      );
      const [store] = stores;
      const items = (await store?.listAudit({ limit: 100 }))?.items ?? [];
      expect(items).toHaveLength(40);
      for (const chain of Map.groupBy(items, ({ node }) => node).values()) {
        expect(chain.map(({ seq }) => seq)).toEqual(chain.map((_, n) => n + 1));
        expect(chain.slice(1).map((record) => record.prev_hash)).toEqual(
          chain.slice(0, -1).map((record) => record.hash),
        );
      }
    });

    test('a failed call commits no events, and concurrent calls keep theirs', async () => {
      const store = await newDatabase().open();
      const row = otpRow();
      await store.insertOtp(row, [event('otp.created')]);
      const results = await Promise.allSettled([
        store.audit([event('service.start')]),
        store.insertOtp(row, [event('otp.created')]),
        store.audit([event('service.stop')]),
      ]);
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect((await auditTypes(store)).sort()).toEqual(['otp.created', 'service.start', 'service.stop']);
    });
  });
}
