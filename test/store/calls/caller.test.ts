import { once } from 'node:events';
import { appendFileSync, renameSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { verifyAudit } from '../../../src/store/sqlite/read-audit.ts';
import { busyLoop } from '../../../src/store/calls/busy-loop.ts';
import { StoreCaller } from '../../../src/store/calls/caller.ts';
import { lost } from '../../../src/store/calls/link.ts';
import type { Store } from '../../../src/store/store.ts';
import { auditTypes, event, openedInThreads, otpRow, temporaryPaths } from '../support.ts';
import { pause } from '../../support/until.ts';

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
      await pause(20);
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
        () => pause(10),
      );
    }
  };
  const lanes = Array.from({ length: 8 }, write);
  for (let kills = 0; kills < 5; kills++) {
    await recovered(store);
    await pause(Math.random() * 60);
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

describe('calls share a message and a commit', () => {
  /** A caller whose messages are looked at: how many calls each had. */
  async function watched(isBusy: () => boolean): Promise<{ caller: StoreCaller; messages: number[] }> {
    const messages: number[] = [];
    const caller = new StoreCaller({
      dependency: 'store_write',
      open(events) {
        setImmediate(() => events.response({ ready: ['work'] }));
        return {
          send(request) {
            if ('close' in request) events.end(lost('closed'));
            if (!('calls' in request)) return;
            messages.push(request.calls.length);
            events.response({ replies: request.calls.map(({ id }) => ({ id, value: id })) });
          },
        };
      },
      now: Date.now,
      isBusy,
    });
    await caller.start();
    return { caller, messages };
  }
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  /** Three calls, each of them in a turn of its own. */
  const three = async (caller: StoreCaller): Promise<Promise<unknown>[]> => {
    const calls = [caller.call('work', [])];
    for (let n = 0; n < 2; n++) {
      await turn();
      calls.push(caller.call('work', []));
    }
    return calls;
  };

  test('where the event loop waits, each turn sends its calls', async () => {
    const { caller, messages } = await watched(() => false);
    await Promise.all([...(await three(caller)), caller.call('work', [])]);
    expect(messages).toEqual([1, 1, 2]);
  });

  test('where it is busy, a call waits for two more, though not for ever, and not at the end', async () => {
    const { caller, messages } = await watched(() => true);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await Promise.all(await three(caller));
    expect(messages).toEqual([3]);
    const alone = caller.call('work', []);
    await turn();
    expect(messages).toEqual([3]);
    vi.runAllTimers();
    await alone;
    expect(messages).toEqual([3, 1]);
    const last = caller.call('work', []);
    await caller.close();
    await last;
    expect(messages).toEqual([3, 1, 1]);
  });

  test('an event loop is busy once it has hardly waited for a tenth of a second, until it has', async () => {
    const isBusy = busyLoop();
    expect(isBusy()).toBe(false);
    const end = performance.now() + 500;
    // A new turn each time, as under load.
    while (performance.now() < end) await turn();
    expect(isBusy()).toBe(true);
    await pause(500);
    expect(isBusy()).toBe(false);
  });
});
