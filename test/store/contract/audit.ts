import { describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../../src/audit/event.ts';
import type { AuditFilter } from '../../../src/store/audit-store.ts';
import { certificateRow, deviceRow, event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, type NewDatabase } from './support.ts';

/** A single failure starts a lockout. */
const ONE = { max_failures: 0, failure_window: 300, lockout_duration: 900 };

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

    test('the events of every commit are reported as the audit log has them, and those of no other call', async () => {
      const reported: AuditEvent[] = [];
      const store = await newDatabase().open(Date.now, (events) => void reported.push(...events));
      const otp = otpRow();
      await store.insertOtp(otp, [event('otp.created')]);
      const direct = reservation({ otp_id: otp.id });
      await store.reserve(direct, [event('auth.otp')]);
      await store.recordCertificate(certificateRow(direct), [event('certificate.issued')]);
      // Nothing changes, and nothing is committed: the token has no use left, and the row exists.
      expect(await store.reserve(reservation({ otp_id: otp.id }), [event('auth.otp')])).toBe('otp-unusable');
      await expect(store.insertOtp(otp, [event('otp.created')])).rejects.toThrow();
      const row = requestRow({ decider: 'ca' });
      await store.submitRequest(row, null, reservation({ request_id: row.id, serial: null }), [event('auth.mtls')]);
      await store.awaitCa(row.id, '17', [event('request.queued')]);
      await Promise.all([
        store.revokeCertificate(
          { ca: direct.ca, serial: direct.serial ?? '', revoked_at: T0, reason: 'superseded', invalidity_date: null },
          [event('certificate.revoked')],
        ),
        store.audit([event('auth.admin', { outcome: 'failure' })]),
        store.recordFailure(['address:192.0.2.1'], ONE, T0, [event('auth.gssapi', { outcome: 'failure' })]),
        store.putDevices([{ row: deviceRow(), events: [event('device.created')] }], 'create'),
      ]);
      const { items } = await store.listAudit({ limit: 100 });
      expect(items.map(({ type, outcome }) => ({ type, outcome }))).toEqual(
        reported.map(({ type, outcome }) => ({ type, outcome })),
      );
      expect(items.map(({ type }) => type)).toEqual(
        expect.arrayContaining(['auth.mtls', 'request.queued', 'lockout.started', 'device.created']),
      );
      expect(items).toHaveLength(10);
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
