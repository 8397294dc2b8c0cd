/** What a start does with the reservations of a process that ended. */
import { expect, test } from 'vitest';
import { reconcile } from '../../src/enrollment/reconcile.ts';
import { createLogger } from '../../src/log.ts';
import { otpRow, requestRow, reservation } from '../store/rows.ts';
import { opened, temporaryPaths } from '../store/support.ts';

const AT_CA = 'the process ended during the submission; the CA may have the request';
const SIGNING = 'the process ended between the intent and the record; no certificate was delivered';

test('closes the reservations of the ended process and says why; uses go back, except of what a CA may have', async () => {
  const store = await opened(temporaryPaths());
  const [signing, submitting] = [otpRow({ client_id: 'a' }), otpRow({ client_id: 'b' })];
  for (const row of [signing, submitting]) await store.insertOtp(row, []);
  const instance = 'ended';
  const reserved = reservation({ instance, otp_id: signing.id, serial: '0a' });
  const alive = reservation({ instance: 'alive' });
  for (const one of [reserved, alive]) expect(await store.reserve(one, [])).toBe('reserved');
  const row = requestRow({ decider: 'ca', otp_id: submitting.id });
  const submission = reservation({ request_id: row.id, instance, serial: null });
  expect(await store.submitRequest(row, null, submission, [])).toBe('submitted');

  const lines: string[] = [];
  const log = createLogger('warn', { write: (line: string) => void lines.push(line) });
  expect(await reconcile(store, log, instance)).toBe(2);
  expect((await store.openReservations()).map(({ request_id }) => request_id)).toEqual([alive.request_id]);
  const { items } = await store.listAudit({ limit: 10, type: 'certificate.failed' });
  const records = items.map(({ request_id, detail, ...event }) => [request_id, detail, event.serial ?? null]);
  expect(records.sort()).toEqual(
    [
      [reserved.request_id, SIGNING, '0a'],
      [row.id, AT_CA, null],
    ].sort(),
  );
  const uses = [signing, submitting].map(async ({ id }) => (await store.getOtp(id))?.uses);
  expect(await Promise.all(uses)).toEqual([0, 1]);
  expect(lines).toHaveLength(1);

  expect([await reconcile(store, log, instance), lines.length]).toEqual([0, 1]);
});

test('an ended process leaves an approved request that waited here for its key', async () => {
  const store = await opened(temporaryPaths());
  const row = requestRow({ status: 'pending' });
  await store.queueRequest(row, null, []);
  await store.decideRequest({ id: row.id, status: 'approved', reason: null, decided_at: 1 }, []);
  expect(await store.claimRequest(reservation({ request_id: row.id }), [])).toBe('reserved');
  expect(await reconcile(store, createLogger('silent'))).toBe(1);
  const { items } = await store.listAudit({ limit: 10, type: 'certificate.failed' });
  expect(items.map(({ detail }) => detail)).toEqual([SIGNING]);
});
