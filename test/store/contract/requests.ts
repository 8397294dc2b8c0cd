import { describe, expect, test } from 'vitest';
import type { Decider, RequestRow } from '../../../src/store/request-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { certificateRow, event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, type NewDatabase } from './support.ts';

async function queue(store: Store, more: Partial<RequestRow> = {}): Promise<RequestRow> {
  const row = requestRow(more);
  expect(await store.queueRequest(row, null, [event('request.queued')])).toBe('queued');
  return row;
}

const decide = (store: Store, { id }: RequestRow, status: 'approved' | 'rejected' = 'approved', at = T0 + 1) =>
  store.decideRequest({ id, status, reason: status === 'rejected' ? 'no' : null, decided_at: at }, [
    event(`request.${status}`),
  ]);

export function requestStoreContract(newDatabase: NewDatabase): void {
  describe('RequestStore', () => {
    test('a request is queued with one token use, found by what it is recognized by, and listed', async () => {
      const store = await newDatabase().open();
      const otp = otpRow({ max_uses: 3 });
      await store.insertOtp(otp, []);
      const row = await queue(store, { otp_id: otp.id });
      expect(await store.getRequest(row.id)).toEqual(row);
      expect(await store.findRequest(row.recognition)).toEqual(row);
      expect((await store.getOtp(otp.id))?.uses).toBe(1);
      const again = requestRow({ recognition: row.recognition, otp_id: otp.id });
      expect(await store.queueRequest(again, null, [event('request.queued')])).toEqual(row);
      expect((await store.getOtp(otp.id))?.uses).toBe(1);
      expect(await store.listRequests({ limit: 10, status: 'pending' })).toEqual({ items: [row], next_cursor: null });
      expect((await store.listRequests({ limit: 10, status: 'approved' })).items).toEqual([]);
      expect(await auditTypes(store)).toEqual(['request.queued']);
    });

    test('a search finds a part of the subject, a name, the requester or the device, ignoring case, or an ID', async () => {
      const store = await newDatabase().open();
      const row = await queue(store, { subject: 'CN=Press-1', sans: ['DNS:press-1.Example'], requester: 'the press' });
      const other = await queue(store, { subject: 'CN=oven', sans: [], requester: 'oven', device: 'Oven-7' });
      const found = async (search: string) => (await store.listRequests({ limit: 9, search })).items;
      for (const search of ['cn=pRe', '1.example', 'THE P', row.id]) expect(await found(search)).toEqual([row]);
      expect(await found('oven-7')).toEqual([other]);
      expect((await store.listRequests({ limit: 9, search: 'oven', labels: ['elsewhere'] })).items).toEqual([]);
    });

    test('a request for a key that does not exist yet has no hash of it', async () => {
      const store = await newDatabase().open();
      const row = await queue(store, { operation: 'serverkeygen', spki_sha256: null });
      expect(await store.getRequest(row.id)).toEqual(row);
    });

    test('without a token use left nothing is queued', async () => {
      const store = await newDatabase().open();
      const otp = otpRow({ uses: 1 });
      await store.insertOtp(otp, []);
      const row = requestRow({ otp_id: otp.id });
      expect(await store.queueRequest(row, null, [event('request.queued')])).toBe('otp-unusable');
      expect(await store.getRequest(row.id)).toBeUndefined();
      expect(await auditTypes(store)).toEqual([]);
    });

    test('a request is decided once', async () => {
      const store = await newDatabase().open();
      const row = await queue(store);
      expect(await decide(store, row, 'rejected')).toBe('decided');
      expect(await decide(store, row)).toBe('not-pending');
      expect(await decide(store, requestRow())).toBe('unknown');
      expect(await store.getRequest(row.id)).toMatchObject({ status: 'rejected', reason: 'no', decided_at: T0 + 1 });
      expect(await auditTypes(store)).toEqual(['request.queued', 'request.rejected']);
    });

    test('an approval that waits for another is kept, and what was decided meanwhile is not overwritten', async () => {
      const store = await newDatabase().open();
      const row = await queue(store, { approvals: 2 });
      const [ada, bob] = [
        { key: 'a', name: 'Ada' },
        { key: 'b', name: 'Bob' },
      ];
      const approve = (before: readonly Decider[], after: readonly Decider[], status: 'pending' | 'approved') =>
        store.decideRequest({ id: row.id, status, reason: null, decided_at: T0 + 1, deciders: { before, after } }, [
          event('request.approved'),
        ]);
      expect(await approve([], [ada], 'pending')).toBe('decided');
      expect(await store.getRequest(row.id)).toEqual({ ...row, decided_by: [ada] });
      expect(await approve([], [bob], 'pending')).toBe('overtaken');
      expect(await approve([ada], [ada, bob], 'approved')).toBe('decided');
      expect(await store.getRequest(row.id)).toMatchObject({
        status: 'approved',
        decided_by: [ada, bob],
        decided_at: T0 + 1,
      });
      expect(await approve([ada, bob], [], 'approved')).toBe('not-pending');
      expect(await auditTypes(store)).toEqual(['request.queued', 'request.approved', 'request.approved']);
    });

    test('two stores on one database: an approved request is claimed by one of them', async () => {
      const database = newDatabase();
      const stores = [await database.open(), await database.open()];
      const [store] = stores;
      if (store === undefined) throw new Error('no store');
      const row = await queue(store);
      const claim = (each: Store) =>
        each.claimRequest(reservation({ request_id: row.id }), [event('request.received')]);
      expect(await claim(store)).toBe('request-taken');
      await decide(store, row);
      const results = await Promise.all([...stores, ...stores].map(claim));
      expect(results.sort()).toEqual(['request-taken', 'request-taken', 'request-taken', 'reserved']);
    });

    test('§6: a claim that a crash left open is closed like every reservation, and the request can be claimed again', async () => {
      const store = await newDatabase().open();
      const otp = otpRow();
      await store.insertOtp(otp, []);
      const row = await queue(store, { otp_id: otp.id });
      await decide(store, row);
      const claim = reservation({ request_id: row.id, otp_id: otp.id });
      expect(await store.claimRequest(claim, [])).toBe('reserved');
      expect(await store.failRequest(row.id, 'too late', T0 + 2, [])).toBe(false);
      expect(await store.releaseReservation(row.id, [event('certificate.failed')])).toBe(true);
      expect((await store.getOtp(otp.id))?.uses).toBe(1);
      const second = reservation({ request_id: row.id, created_at: T0 + 5000 });
      expect(await store.claimRequest(second, [])).toBe('reserved');
      const certificate = certificateRow(second);
      await store.recordCertificate(certificate, []);
      expect(await store.getRequest(row.id)).toMatchObject({
        status: 'issued',
        serial: certificate.serial,
        changed_at: T0 + 5000,
      });
      expect(await store.claimRequest(reservation({ request_id: row.id }), [])).toBe('request-taken');
    });

    test('a request that the CA refuses gives its token use back and may be queued anew', async () => {
      const store = await newDatabase().open();
      const otp = otpRow();
      await store.insertOtp(otp, []);
      const row = await queue(store, { otp_id: otp.id });
      expect(await store.failRequest(row.id, 'not approved', T0, [])).toBe(false);
      await decide(store, row);
      expect(await store.failRequest(row.id, 'policy', T0 + 2, [event('certificate.failed')])).toBe(true);
      expect((await store.getOtp(otp.id))?.uses).toBe(0);
      expect(await store.getRequest(row.id)).toMatchObject({ status: 'failed', reason: 'policy' });
      expect(await store.findRequest(row.recognition)).toBeUndefined();
      await queue(store, { recognition: row.recognition, otp_id: otp.id });
    });

    test('requests expire undecided or uncollected, and are deleted after their retention', async () => {
      const store = await newDatabase().open();
      const lifetimes = { pending_ttl: 1000, retention: 500 };
      const undecided = await queue(store);
      const uncollected = await queue(store, { created_at: T0 + 900, changed_at: T0 + 900 });
      await decide(store, uncollected, 'approved', T0 + 950);
      const rejected = await queue(store);
      await decide(store, rejected, 'rejected', T0 + 950);
      const issuing = await queue(store);
      await decide(store, issuing);
      await store.claimRequest(reservation({ request_id: issuing.id }), []);

      expect(await store.expireRequests(lifetimes, T0 + 999)).toEqual({ expired: 0, purged: 0 });
      expect(await store.expireRequests(lifetimes, T0 + 1400)).toEqual({ expired: 1, purged: 0 });
      expect(await store.getRequest(undecided.id)).toMatchObject({ status: 'expired', changed_at: T0 + 1400 });
      expect(await store.expireRequests(lifetimes, T0 + 1450)).toEqual({ expired: 0, purged: 1 });
      expect(await store.getRequest(rejected.id)).toBeUndefined();
      expect(await store.expireRequests(lifetimes, T0 + 1950)).toEqual({ expired: 1, purged: 1 });
      expect(await store.getRequest(uncollected.id)).toMatchObject({ status: 'expired' });
      expect(await store.getRequest(issuing.id)).toMatchObject({ status: 'approved' });
      expect((await auditTypes(store)).filter((type) => type === 'request.expired')).toHaveLength(2);
    });

    test('an issued request that is superseded makes room for a new one', async () => {
      const store = await newDatabase().open();
      const row = await queue(store);
      await decide(store, row);
      const claim = reservation({ request_id: row.id });
      await store.claimRequest(claim, []);
      await store.recordCertificate(certificateRow(claim), []);
      const next = requestRow({ recognition: row.recognition });
      expect(await store.queueRequest(next, null, [])).toMatchObject({ id: row.id, status: 'issued' });
      expect(await store.queueRequest(next, row.id, [])).toBe('queued');
      expect(await store.findRequest(row.recognition)).toEqual(next);
    });
  });
}
