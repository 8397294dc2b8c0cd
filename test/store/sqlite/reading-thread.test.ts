import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { event, issue, opened, otpRow, temporaryPaths } from '../support.ts';

/** Collects the threads that are started from now on. */
function watchThreads(): Worker[] {
  const threads: Worker[] = [];
  const add = (worker: Worker): number => threads.push(worker);
  process.on('worker', add);
  onTestFinished(() => {
    process.off('worker', add);
  });
  return threads;
}

test('writes and quick reads need no thread; the first list starts one, and closing ends it', async () => {
  const threads = watchThreads();
  const store = await opened(temporaryPaths());
  const row = otpRow();
  await store.insertOtp(row, [event('otp.created')]);
  expect(await store.getOtp(row.id)).toMatchObject({ id: row.id });
  expect(threads).toHaveLength(0);
  expect((await store.listOtps({ limit: 10 }, 0)).items).toHaveLength(1);
  expect(threads).toHaveLength(1);
  await store.close();
  expect(threads.map(({ threadId }) => threadId)).toEqual([-1]);
});

test('when the thread ends, its calls fail with 503, writes go on, and the next list starts another thread', async () => {
  const threads = watchThreads();
  const store = await opened(temporaryPaths());
  await store.listOtps({ limit: 1 }, 0);
  const [thread] = threads;
  if (thread === undefined) throw new Error('no thread');
  const ended = once(thread, 'exit');
  await Promise.all([
    thread.terminate(),
    expect(store.listOtps({ limit: 1 }, 0)).rejects.toMatchObject({
      status: 503,
      code: 'STORE_UNAVAILABLE',
      retryAfter: 1,
    }),
    ended,
  ]);
  await store.insertOtp(otpRow(), [event('otp.created')]);
  expect((await store.listOtps({ limit: 10 }, 0)).items).toHaveLength(1);
  expect(threads).toHaveLength(2);
});

test('bytes come back from the thread as a Buffer', async () => {
  const store = await opened(temporaryPaths());
  const { serial, ca } = await issue(store, { ca: 'devices' });
  const revocation = { ca, serial, revoked_at: 1, reason: 'superseded', invalidity_date: null };
  await store.revokeCertificate(revocation, []);
  const filter = { ca, revoked_until: 2, valid_at: 0, after: 0, limit: 10 };
  const { der } = await store.revokedEntries(filter);
  expect(Buffer.isBuffer(der)).toBe(true);
});
