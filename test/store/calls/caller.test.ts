import { once } from 'node:events';
import { appendFileSync, renameSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { verifyAudit } from '../../../src/audit/verify.ts';
import type { Store } from '../../../src/store/store.ts';
import { auditTypes, event, openedInThreads, otpRow, temporaryPaths } from '../support.ts';

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

/** Waits until calls are served again. */
async function recovered(store: Store): Promise<void> {
  for (;;) {
    try {
      await store.checkWritable();
      await store.listOtps({ limit: 1 }, 0);
      return;
    } catch {
      await delay(20);
    }
  }
}

test('when a thread dies, what is under way fails with 503 at once, and a new thread takes over', async () => {
  const threads = watchThreads();
  const paths = temporaryPaths();
  const store = await openedInThreads(paths);
  const [writer, reader] = threads;
  if (writer === undefined || reader === undefined) throw new Error('no threads');
  await store.audit([event('service.start')]);

  const died = [writer, reader].map((thread) => once(thread, 'exit'));
  const underWay = Promise.allSettled(Array.from({ length: 20 }, () => store.audit([event('admin.access')])));
  await Promise.all([writer.terminate(), reader.terminate(), ...died]);
  const unavailable = { status: 503, code: 'STORE_UNAVAILABLE', retryAfter: 1 };
  const results = await underWay;
  for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject(unavailable);
  const acknowledged = results.filter((result) => result.status === 'fulfilled').length;
  await expect(store.audit([event('admin.access')])).rejects.toMatchObject(unavailable);
  await expect(store.getOtp('x')).rejects.toMatchObject(unavailable);

  await recovered(store);
  await store.audit([event('service.stop')]);
  const types = await auditTypes(store);
  expect([types[0], types.at(-1)]).toEqual(['service.start', 'service.stop']);
  expect(types.filter((type) => type === 'admin.access').length).toBeGreaterThanOrEqual(acknowledged);
  expect(await verifyAudit({ storePath: paths.path, auditFile: paths.auditFile })).toMatchObject({ ok: true });
});

test('a thread killed in the middle of writing: acknowledged calls are there, and the chain goes on', async () => {
  const threads = watchThreads();
  const paths = temporaryPaths();
  const store = await openedInThreads(paths);
  const acknowledged: string[] = [];
  const stop = new AbortController();
  const write = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const row = otpRow();
      await store.insertOtp(row, [event('otp.created')]).then(
        () => acknowledged.push(row.id),
        () => delay(10),
      );
    }
  };
  const lanes = Array.from({ length: 8 }, write);
  for (let kills = 0; kills < 5; kills++) {
    await recovered(store);
    await delay(Math.random() * 60);
    await threads.findLast((thread) => thread.threadName?.endsWith('writer'))?.terminate();
  }
  await recovered(store);
  stop.abort();
  await Promise.all(lanes);
  expect(acknowledged.length).toBeGreaterThan(0);
  for (const id of acknowledged) expect(await store.getOtp(id)).toBeDefined();
  expect(await verifyAudit({ storePath: paths.path, auditFile: paths.auditFile })).toMatchObject({ ok: true });
});

test('a thread that cannot start again tells why, until it can', async () => {
  const threads = watchThreads();
  const paths = temporaryPaths();
  const store = await openedInThreads(paths);
  await store.audit([event('service.start')]);
  appendFileSync(paths.auditFile, 'hello\n');
  await threads[0]?.terminate();
  await vi.waitUntil(() => threads.length > 3, { timeout: 20_000 });
  await expect(store.audit([event('admin.access')])).rejects.toMatchObject({ status: 503, code: 'AUDIT_TAMPERED' });
  expect(await auditTypes(store)).toEqual(['service.start']);
  renameSync(paths.auditFile, `${paths.auditFile}.1`);
  await recovered(store);
  expect(await auditTypes(store)).toEqual(['service.start', 'audit.rotated']);
});

test('a store closed while a thread is being started again leaves no thread behind', async () => {
  const threads = watchThreads();
  const store = await openedInThreads(temporaryPaths());
  await threads[0]?.terminate();
  await vi.waitUntil(() => threads.length > 2, { timeout: 20_000 });
  await store.close();
  expect(threads.map((thread) => thread.threadId)).toEqual([-1, -1, -1]);
});

test('close commits what is waiting; later calls are refused, and closing again is no error', async () => {
  const paths = temporaryPaths();
  const store = await openedInThreads(paths);
  const waiting = Array.from({ length: 100 }, () => store.insertOtp(otpRow(), [event('otp.created')]));
  await store.close();
  await Promise.all(waiting);
  await expect(store.getOtp('x')).rejects.toMatchObject({ status: 503, code: 'STORE_UNAVAILABLE' });
  await store.close();
  expect((await (await openedInThreads(paths)).listOtps({ limit: 200 }, 0)).items).toHaveLength(100);
});

test('more calls than the store can queue are refused at once with 503, the others are served', async () => {
  const store = await openedInThreads(temporaryPaths());
  const results = await Promise.allSettled(Array.from({ length: 10_500 }, () => store.getOtp('x')));
  expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(10_000);
  expect(results.at(-1)).toMatchObject({ reason: { status: 503, code: 'STORE_UNAVAILABLE', retryAfter: 1 } });
});
