import { describe, expect, test } from 'vitest';
import type { Call, Writer } from '../../../src/store/calls/calls.ts';
import { WriteQueue } from '../../../src/store/calls/write-queue.ts';
import { event, opened, otpRow, temporaryPaths } from '../support.ts';

/** A writer whose transactions end when the test says so. */
class Steps implements Writer {
  readonly operations = ['work'];
  readonly groups: number[] = [];
  readonly #ends: (() => void)[] = [];

  async carryOut(calls: readonly Call[]): Promise<readonly { value: unknown }[]> {
    this.groups.push(calls.length);
    await new Promise<void>((resolve) => this.#ends.push(resolve));
    return calls.map(({ args: [value] }) => ({ value }));
  }

  end(): void {
    this.#ends.shift()?.();
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function started(): { steps: Steps; queue: WriteQueue } {
  const steps = new Steps();
  return { steps, queue: new WriteQueue(steps, () => 0) };
}

describe('calls share a commit', () => {
  test('those of one turn, and those that arrive while another group is being committed', async () => {
    const { steps, queue } = started();
    const first = [queue.call('work', [1]), queue.call('work', [2])];
    await turn();
    const second = [queue.call('work', [3])];
    await turn();
    second.push(queue.call('work', [4]), queue.call('work', [5]));
    expect(steps.groups).toEqual([2]);
    steps.end();
    expect(await Promise.all(first)).toEqual([1, 2]);
    await expect.poll(() => steps.groups).toEqual([2, 3]);
    steps.end();
    expect(await Promise.all(second)).toEqual([3, 4, 5]);
  });

  test('work between two groups waits for the first, and the second waits for it', async () => {
    const { steps, queue } = started();
    const order: string[] = [];
    const first = queue.call('work', []).then(() => order.push('first'));
    await turn();
    const between = queue.between(async () => {
      await turn();
      order.push('between');
    });
    const second = queue.call('work', []).then(() => order.push('second'));
    steps.end();
    await between;
    await expect.poll(() => steps.groups).toEqual([1, 1]);
    steps.end();
    await Promise.all([first, second]);
    expect(order).toEqual(['first', 'between', 'second']);
  });

  test('work between two groups that fails fails its caller only', async () => {
    const { steps, queue } = started();
    await expect(queue.between(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const call = queue.call('work', [1]);
    await expect.poll(() => steps.groups).toEqual([1]);
    steps.end();
    expect(await call).toBe(1);
  });
});

test('a call that follows the end of the work between two groups is carried out', async () => {
  const { steps, queue } = started();
  // The queue comes to its end some microtasks after the work.
  for (let microtasks = 0; microtasks < 20; microtasks++) {
    await queue.between(() => Promise.resolve());
    for (let n = 0; n < microtasks; n++) await Promise.resolve();
    const call = queue.call('work', [microtasks]);
    await expect.poll(() => steps.groups.length).toBe(microtasks + 1);
    steps.end();
    expect(await call).toBe(microtasks);
  }
});

test('more calls than the store can queue are rejected at once with 503, the others are served', async () => {
  const { steps, queue } = started();
  const results = Array.from({ length: 10_001 }, () => queue.call('work', ['done']));
  await expect(results.at(-1)).rejects.toMatchObject({ status: 503, code: 'STORE_UNAVAILABLE', retryAfter: 1 });
  // One group after the other, of 256 calls each.
  for (let ended = 0; ended < 40; ended++) {
    await expect.poll(() => steps.groups.length).toBe(ended + 1);
    steps.end();
  }
  expect(new Set(await Promise.all(results.slice(0, -1)))).toEqual(new Set(['done']));
});

test('close commits what is waiting; later calls are rejected, and closing again is not an error', async () => {
  const paths = temporaryPaths();
  const store = await opened(paths);
  const waiting = Array.from({ length: 100 }, () => store.insertOtp(otpRow(), [event('otp.created')]));
  await store.close();
  await Promise.all(waiting);
  const unavailable = { status: 503, code: 'STORE_UNAVAILABLE' };
  await expect(store.getOtp('x')).rejects.toMatchObject(unavailable);
  await expect(store.listOtps({ limit: 1 }, 0)).rejects.toMatchObject(unavailable);
  await expect(store.audit([event('admin.access')])).rejects.toMatchObject(unavailable);
  await store.close();
  expect((await (await opened(paths)).listOtps({ limit: 200 }, 0)).items).toHaveLength(100);
});
