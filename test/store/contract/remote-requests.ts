import { describe, expect, test } from 'vitest';
import type { RequestRow } from '../../../src/store/request-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, type NewDatabase } from './support.ts';
import type { RequestEnd } from '../../../src/store/remote-request-store.ts';

const REJECTED: RequestEnd = {
  status: 'rejected',
  reason: 'no',
  decided_at: T0 + 9,
  final: false,
  otp_use_returns: true,
};

/** Submits a request with a token of one use; the process is at work on it until it says what became of it. */
async function submit(store: Store, more: Partial<RequestRow> = {}): Promise<RequestRow> {
  const otp = otpRow();
  await store.insertOtp(otp, []);
  const row = requestRow({ decider: 'ca', otp_id: otp.id, ...more });
  const intent = reservation({ request_id: row.id, serial: null });
  expect(await store.submitRequest(row, null, intent, [event('request.received')])).toBe('submitted');
  return row;
}

const uses = async (store: Store, row: RequestRow): Promise<number | undefined> =>
  (await store.getOtp(row.otp_id ?? ''))?.uses;

export function remoteRequestStoreContract(newDatabase: NewDatabase): void {
  describe('RemoteRequestStore', () => {
    test('the intent is there before the submission, with the token use; with a reference it waits at the CA', async () => {
      const store = await newDatabase().open();
      const row = await submit(store);
      expect(await store.openReservations()).toMatchObject([{ request_id: row.id, otp_id: null }]);
      expect(await uses(store, row)).toBe(1);
      const again = requestRow({ recognition: row.recognition });
      const intent = reservation({ request_id: again.id, serial: null });
      expect(await store.submitRequest(again, null, intent, [event('request.received')])).toEqual(row);
      await store.awaitCa(row.id, '17', [event('request.queued')]);
      expect(await store.openReservations()).toEqual([]);
      expect(await store.getRequest(row.id)).toEqual({ ...row, reference: '17' });
      expect(await auditTypes(store)).toEqual(['request.received', 'request.queued']);
    });

    test('without a token use left nothing is submitted', async () => {
      const store = await newDatabase().open();
      const otp = otpRow({ uses: 1 });
      await store.insertOtp(otp, []);
      const row = requestRow({ decider: 'ca', otp_id: otp.id });
      const intent = reservation({ request_id: row.id, serial: null });
      expect(await store.submitRequest(row, null, intent, [event('request.received')])).toBe('otp-unusable');
      expect(await store.openReservations()).toEqual([]);
      expect(await auditTypes(store)).toEqual([]);
    });

    test('what the CA certainly did not take never was, and its token use goes back', async () => {
      const store = await newDatabase().open();
      const row = await submit(store);
      await store.withdrawRequest(row.id, [event('certificate.failed')]);
      expect(await store.getRequest(row.id)).toBeUndefined();
      expect(await store.openReservations()).toEqual([]);
      expect(await uses(store, row)).toBe(0);
    });

    test('an approved request is handed on, and is approved again when the CA did not take it', async () => {
      const store = await newDatabase().open();
      const row = requestRow();
      await store.queueRequest(row, null, []);
      await store.decideRequest({ id: row.id, status: 'approved', reason: null, decided_at: T0 + 1 }, []);
      const intent = reservation({ request_id: row.id, serial: null });
      expect(await store.submitRequest(row, null, intent, [])).toBe('submitted');
      expect(await store.getRequest(row.id)).toMatchObject({ status: 'pending', decider: 'ca' });
      await store.withdrawRequest(row.id, []);
      expect(await store.getRequest(row.id)).toMatchObject({ status: 'approved', decider: 'admin' });
    });

    test('of those who ask at once one may ask the CA; nobody while somebody is at work on it', async () => {
      const database = newDatabase();
      const stores = [await database.open(), await database.open()];
      const [store] = stores;
      if (store === undefined) throw new Error('no store');
      const row = await submit(store);
      expect(await store.takePoll(row.id, T0 + 10, T0)).toBe(false);
      await store.awaitCa(row.id, '17', []);
      const asked = await Promise.all([...stores, ...stores].map((each) => each.takePoll(row.id, T0 + 20, T0 + 10)));
      expect(asked.filter(Boolean)).toHaveLength(1);
      expect(await store.takePoll(row.id, T0 + 30, T0 + 19)).toBe(false);
      expect(await store.takePoll(row.id, T0 + 30, T0 + 20)).toBe(true);
    });

    test('submissions whose fate is not known are listed until somebody asks for them', async () => {
      const store = await newDatabase().open();
      const [first, second, atWork] = [await submit(store), await submit(store), await submit(store)];
      for (const row of [first, second]) await store.awaitCa(row.id, null, []);
      const known = await submit(store);
      await store.awaitCa(known.id, '17', []);
      expect((await store.listToPoll(T0, 10, [])).map(({ id }) => id)).toEqual([first.id, second.id]);
      expect((await store.listToPoll(T0, 1, [])).map(({ id }) => id)).toEqual([first.id]);
      expect(await store.takePoll(first.id, T0 + 10, T0)).toBe(true);
      expect((await store.listToPoll(T0, 10, [])).map(({ id }) => id)).toEqual([second.id]);
      const { ca } = known;
      expect((await store.listToPoll(T0, 10, [ca])).map(({ id }) => id)).toEqual([second.id, known.id]);
      expect(await store.getRequest(atWork.id)).toMatchObject({ status: 'pending' });
    });

    test('since when the CA does not know it is kept until a reference comes', async () => {
      const store = await newDatabase().open();
      const row = await submit(store);
      await store.awaitCa(row.id, null, []);
      await store.noteWaiting(row.id, { reason: 'its people decide', missing_since: T0 + 5 });
      expect(await store.getRequest(row.id)).toMatchObject({ missing_since: T0 + 5, reason: 'its people decide' });
      await store.awaitCa(row.id, '17', []);
      expect(await store.getRequest(row.id)).toMatchObject({ missing_since: null, reference: '17' });
    });

    test('a request ends once, when nobody is at work on it; its token use goes back where that is asked', async () => {
      const store = await newDatabase().open();
      const [kept, returned] = [await submit(store), await submit(store)];
      const events = [event('request.rejected')];
      expect(await store.endRequest(kept.id, REJECTED, T0 + 9, events)).toBe(false);
      for (const row of [kept, returned]) await store.awaitCa(row.id, '17', []);
      expect(await store.endRequest(kept.id, { ...REJECTED, otp_use_returns: false }, T0 + 9, events)).toBe(true);
      expect(await store.endRequest(returned.id, REJECTED, T0 + 9, events)).toBe(true);
      expect(await store.endRequest(returned.id, REJECTED, T0 + 10, events)).toBe(false);
      expect([await uses(store, kept), await uses(store, returned)]).toEqual([1, 0]);
      expect(await store.getRequest(returned.id)).toMatchObject({
        status: 'rejected',
        reason: 'no',
        changed_at: T0 + 9,
      });
      expect((await auditTypes(store)).filter((type) => type === 'request.rejected')).toHaveLength(2);
    });

    test('failed for good is the answer to who asks again; failed otherwise is not', async () => {
      const store = await newDatabase().open();
      const [final, passing] = [await submit(store), await submit(store)];
      for (const row of [final, passing]) await store.awaitCa(row.id, '17', []);
      await store.endRequest(final.id, { ...REJECTED, status: 'failed', final: true }, T0 + 9, []);
      await store.endRequest(passing.id, { ...REJECTED, status: 'failed' }, T0 + 9, []);
      expect(await store.findRequest(final.recognition)).toMatchObject({ id: final.id, status: 'failed' });
      expect(await store.findRequest(passing.recognition)).toBeUndefined();
    });
  });
}
