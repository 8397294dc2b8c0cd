import { describe, expect, test } from 'vitest';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { certificateRow, event, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';

const DAY = 86_400_000;

export function rescueStoreContract(newDatabase: NewDatabase): void {
  const order = ({ ca, serial }: CertificateRow, until = T0 + DAY) => ({
    ...{ ca, serial, until, reason: null, created_at: T0, created_by: 'Ada' },
  });
  const rescue = (store: Store, row: CertificateRow, until?: number) =>
    store.rescueCertificate(order(row, until), [event('certificate.rescued')]);
  const request = ({ ca, serial }: CertificateRow, recognition = 'a', request_id = 'r') =>
    reservation({ request_id, created_at: T0 + 1000, rescued: { ca, serial, recognition } });
  const findRescues = (store: Store, { serial }: CertificateRow) => store.findRescues(serial, T0);

  describe('RescueStore', () => {
    test('a pass is open until its time has passed, and a second call replaces the time', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      const { ca, serial, der } = row;
      expect([await rescue(store, row), await rescue(store, row, T0 + 2 * DAY)]).toEqual(['rescued', 'rescued']);
      expect(await findRescues(store, row)).toEqual([{ ca, serial, der, request_id: null, recognition: null }]);
      expect(await store.listRescues([serial, '00'], T0)).toEqual([{ ca, serial, until: T0 + 2 * DAY }]);
      expect(await store.listRescues([], T0)).toEqual([]);
      expect(await store.findRescues(serial, T0 + 2 * DAY)).toEqual([]);
      expect(await store.endRescue(row, T0 + 2 * DAY, [])).toBe(false);
      expect([await store.endRescue(row, T0, []), await store.endRescue(row, T0, [])]).toEqual([true, false]);
      expect(await rescue(store, { ...row, serial: '00' })).toBe('unknown');
      expect((await auditTypes(store)).filter((type) => type === 'certificate.rescued')).toHaveLength(2);
    });

    test('a pass outlives the import that completes a restored certificate', async () => {
      const store = await newDatabase().open();
      const row = await issue(store, { der: Buffer.alloc(0) });
      await rescue(store, row);
      expect(await store.importCertificate({ ...row, der: Buffer.from('der') }, [])).toBe('imported');
      expect(await store.listRescues([row.serial], T0)).toEqual([{ ca: row.ca, serial: row.serial, until: T0 + DAY }]);
    });

    test('a revoked certificate gets no pass, and its pass is not listed', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      const { ca, serial } = row;
      await rescue(store, row);
      await store.revokeCertificate({ ca, serial, revoked_at: T0, reason: 'superseded', invalidity_date: null }, []);
      expect(await store.listRescues([serial], T0)).toEqual([]);
      expect(await rescue(store, row)).toBe('revoked');
    });

    test('a pass is used when a renewal is recorded, and then only its repeats find it', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      await rescue(store, row);
      const first = request(row);
      expect(await store.reserve(first, [])).toBe('reserved');
      expect(await store.findRescueUse(request(row).rescued ?? expect.fail())).toMatchObject({
        ...{ request_id: 'r', used: false, under_way: true },
      });
      expect(await store.reserve(request(row, 'a', 's'), []), 'the same request').toBe('repeated');
      expect(await store.reserve(request(row, 'b', 's'), []), 'another one').toBe('rescue-over');
      await store.releaseReservation('r', []);
      expect(await store.reserve(first, [])).toBe('reserved');
      await store.recordCertificate(certificateRow(first), []);
      expect(await findRescues(store, row)).toMatchObject([{ request_id: 'r', recognition: 'a' }]);
      expect(await store.findRescueUse({ ca: row.ca, serial: row.serial, recognition: 'a' })).toEqual({
        ...{ request_id: 'r', used: true, under_way: false },
      });
      expect(await store.listRescues([row.serial], T0)).toEqual([]);
      expect(await store.reserve(request(row, 'a', 's'), [])).toBe('repeated');
      expect(await store.reserve(request(row, 'b', 's'), [])).toBe('rescue-over');
      expect((await auditTypes(store)).filter((type) => type === 'certificate.rescue_ended')).toHaveLength(1);
      expect(await rescue(store, row), 'another pass').toBe('rescued');
      expect(await findRescues(store, row)).toMatchObject([{ request_id: null, recognition: null }]);
    });

    test('a queued request uses the pass when it is issued, and any other may be issued before', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      await rescue(store, row);
      const [one, two] = [requestRow({ recognition: 'a' }), requestRow({ recognition: 'b' })];
      for (const each of [one, two])
        expect(await store.queueRequest(each, null, [], request(row, each.recognition).rescued)).toBe('queued');
      for (const { id } of [one, two])
        await store.decideRequest({ id, status: 'approved', reason: null, decided_at: T0 }, []);
      const claimed = request(row, 'a', one.id);
      expect(await store.claimRequest(claimed, [])).toBe('reserved');
      await store.recordCertificate(certificateRow(claimed), []);
      expect(await store.claimRequest(request(row, 'b', two.id), [])).toBe('rescue-over');
      expect(await findRescues(store, row)).toMatchObject([{ request_id: one.id }]);
      expect(await store.queueRequest(requestRow(), null, [], request(row, 'c').rescued)).toBe('rescue-over');
    });

    test('a request that waits at a remote CA keeps the pass from others', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      await rescue(store, row);
      const [one, two] = [requestRow({ recognition: 'a' }), requestRow({ recognition: 'b' })];
      const submit = (of: typeof one) =>
        store.submitRequest(of, null, { ...request(row, of.recognition, of.id), serial: null }, []);
      expect(await submit(one)).toBe('submitted');
      await store.awaitCa(one.id, '7', []);
      expect(await submit(two)).toBe('rescue-over');
      await store.withdrawRequest(one.id, []);
      expect(await submit(two)).toBe('submitted');
    });

    test('without holders, none is listed', async () => {
      const store = await newDatabase().open();
      await issue(store);
      for (const label of [undefined, 'devices'])
        expect(await store.listHeldCertificates(0, label)).toEqual({ holders: [], next: null });
      expect(await store.listGivenChains()).toEqual([]);
    });

    test('a certificate with a pass is not purged', async () => {
      const store = await newDatabase().open();
      const row = await issue(store, { not_after: T0 - DAY });
      await rescue(store, row);
      expect(await store.purgeCertificates(T0, T0)).toBe(0);
      expect(await store.purgeCertificates(T0, T0 + DAY)).toBe(1);
    });
  });
}
