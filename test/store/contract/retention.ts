import { describe, expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { certificateRow, deviceRow, event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';
import { PURGED_AT_ONCE } from '../../../src/store/port.ts';

const DAY = 86_400_000;

const remains = async (store: Store, serial: string): Promise<boolean> =>
  (await store.getCertificates(serial)).length > 0;

export function retentionStoreContract(newDatabase: NewDatabase): void {
  describe('RetentionStore', () => {
    test('certificates leave after their end, a batch at a time, and the audit log tells', async () => {
      const store = await newDatabase().open();
      const young = await issue(store, { not_after: T0 });
      await Promise.all(Array.from({ length: PURGED_AT_ONCE + 1 }, () => issue(store, { not_after: T0 - 1 })));
      expect(await store.purgeCertificates(T0, T0)).toBe(PURGED_AT_ONCE);
      expect(await store.purgeCertificates(T0, T0)).toBe(1);
      expect(await store.purgeCertificates(T0, T0)).toBe(0);
      expect(await remains(store, young.serial)).toBe(true);
      const purges = (await store.listAudit({ limit: 10, type: 'store.purged' })).items;
      expect(purges.map(({ detail }) => detail)).toEqual([
        `${PURGED_AT_ONCE} expired certificates before ${new Date(T0).toISOString()}`,
        `1 expired certificates before ${new Date(T0).toISOString()}`,
      ]);
    });

    test('RFC 5280 §3.3: a revoked certificate stays until a CRL that was issued after its end', async () => {
      const store = await newDatabase().open();
      const { serial } = await issue(store, { not_after: T0 });
      const revocation = { ca: 'devices', serial, revoked_at: T0 - DAY, reason: 'superseded', invalidity_date: null };
      await store.revokeCertificate(revocation, []);
      const list = async (this_update: number): Promise<void> => {
        const number = await store.takeCrlNumber('devices');
        const next_update = this_update + DAY;
        await store.saveCrl({ ca: 'devices', number, this_update, next_update, der: Buffer.from('list') }, 0, []);
      };
      await list(T0);
      expect(await store.purgeCertificates(T0 + 9 * DAY, T0)).toBe(0);
      await list(T0 + 1);
      expect(await store.purgeCertificates(T0 + 9 * DAY, T0)).toBe(1);
    });

    test('a certificate stays while the queued request that came to it may be asked for', async () => {
      const store = await newDatabase().open();
      const queued = requestRow();
      await store.queueRequest(queued, null, []);
      await store.decideRequest({ id: queued.id, status: 'approved', reason: null, decided_at: T0 }, []);
      const intent = reservation({ request_id: queued.id });
      expect(await store.claimRequest(intent, [])).toBe('reserved');
      await store.recordCertificate(certificateRow(intent, { not_after: T0 + 5000 }), []);
      const ended = T0 + DAY;
      expect(await store.purgeCertificates(ended, T0)).toBe(0);
      await store.expireRequests({ pending_ttl: DAY, retention: 0 }, ended);
      expect(await store.purgeCertificates(ended, T0)).toBe(1);
    });

    test('tokens leave once they are over: expired, revoked or used up; live ones stay', async () => {
      const store = await newDatabase().open();
      const far = T0 + 900 * DAY;
      const live = otpRow({ expires_at: far, max_uses: 2, uses: 1 });
      const expired = otpRow({ expires_at: T0 });
      const revoked = otpRow({ expires_at: far, revoked_at: T0 });
      const revokedLater = otpRow({ expires_at: far, revoked_at: T0 + 1 });
      const used = otpRow({ expires_at: far });
      for (const row of [live, expired, revoked, revokedLater, used]) await store.insertOtp(row, []);
      const use = reservation({ otp_id: used.id, created_at: T0 });
      await store.reserve(use, [], { recognition: 'r', retry_window: 0 });
      const since = { ended: T0, used: T0 };
      const { ids, next } = await store.findOverTokens(since, 0);
      expect(next).toBeNull();
      expect(ids).toEqual([expired.id, revoked.id, used.id]);
      expect((await store.findOverTokens({ ended: T0, used: T0 - 1 }, 0)).ids).toEqual([expired.id, revoked.id]);
      expect(await store.purgeTokens([...ids, live.id], since), 'one is reserved, one is live').toBe(2);
      await store.releaseReservation(use.request_id, []);
      expect(await store.purgeTokens([used.id], since), 'its use came back').toBe(0);
      expect(await store.getOtp(used.id)).toMatchObject({ uses: 0 });
      expect(await auditTypes(store)).toContain('store.purged');
    });

    test('a token stays as long as a queued request names it', async () => {
      const store = await newDatabase().open();
      const token = otpRow();
      await store.insertOtp(token, []);
      await store.queueRequest(requestRow({ otp_id: token.id }), null, []);
      const since = { ended: T0 + 900 * DAY, used: T0 + 900 * DAY };
      expect(await store.purgeTokens([token.id], since)).toBe(0);
      await store.expireRequests({ pending_ttl: 0, retention: 0 }, T0 + DAY);
      await store.expireRequests({ pending_ttl: 0, retention: 0 }, T0 + 2 * DAY);
      expect(await store.purgeTokens([token.id], since)).toBe(1);
    });

    test('devices leave after their not_after; those without one stay', async () => {
      const store = await newDatabase().open();
      const rows = [null, T0 - 1, T0].map((not_after, n) => deviceRow({ id: `device-${n}`, not_after }));
      const entries = rows.map((row) => ({ row, events: [event('device.created')] }));
      await store.putDevices(entries, 'create');
      expect(await store.purgeDevices(T0)).toBe(1);
      expect((await store.getDevices('device-1'))[0]).toBeUndefined();
      expect([(await store.getDevices('device-0'))[0], (await store.getDevices('device-2'))[0]]).not.toContain(
        undefined,
      );
      const [told] = (await store.listAudit({ limit: 10, type: 'device.deleted' })).items;
      expect(told?.detail).toContain('device-1');
    });

    test('audit records leave only up to where a record says that they are archived', async () => {
      const store = await newDatabase().open();
      for (let n = 0; n < 5; n++) await store.audit([event('admin.access')]);
      expect(await store.purgeArchived()).toBe(0);
      expect(await store.lastArchived()).toBeUndefined();
      const lines = await store.auditLines(1, 2);
      expect(lines.map(({ seq }) => seq)).toEqual([2, 3]);
      const range = { first: 1, last: 3, hash: 'h' };
      await store.noteArchived(range, 'three records');
      expect(await store.lastArchived()).toEqual(range);
      expect(await store.purgeArchived()).toBe(3);
      expect(await store.purgeArchived()).toBe(0);
      expect((await store.auditLines(0, 9)).map(({ seq }) => seq)).toEqual([4, 5, 6]);
    });
  });
}
