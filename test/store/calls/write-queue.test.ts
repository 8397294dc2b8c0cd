import { describe, expect, test } from 'vitest';
import { EstuaryError } from '../../../src/errors.ts';
import { type Call, type QueueOptions, type Writer, WriteQueue } from '../../../src/store/calls/write-queue.ts';
import { completeWork, nothing, write } from '../../../src/store/operation.ts';
import { result } from '../../../src/store/port.ts';
import { done } from '../../../src/store/calls/calls.ts';
import { event, opened, otpRow, temporaryPaths } from '../support.ts';

/** A writer whose transactions end when the test says so. */
class Steps implements Writer {
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

function started(lease: Pick<QueueOptions, 'isHeld'> = {}) {
  const steps = new Steps();
  const queue = new WriteQueue(steps, { now: () => 0, ...lease });
  const work = queue.callOf(write(nothing, (value: unknown) => result(done(value, []))));
  return { steps, queue, call: (value?: unknown) => work(value as never) };
}

describe('calls share a commit', () => {
  test('those of one turn, and those that arrive while another group is being committed', async () => {
    const { steps, call } = started();
    const first = [call(1), call(2)];
    await turn();
    const second = [call(3)];
    await turn();
    second.push(call(4), call(5));
    expect(steps.groups).toEqual([2]);
    steps.end();
    expect(await Promise.all(first)).toEqual([1, 2]);
    await expect.poll(() => steps.groups).toEqual([2, 3]);
    steps.end();
    expect(await Promise.all(second)).toEqual([3, 4, 5]);
  });

  test('work between two groups waits for the first, and the second waits for it', async () => {
    const { steps, queue, call } = started();
    const order: string[] = [];
    const first = call().then(() => order.push('first'));
    await turn();
    const between = queue.between(async () => {
      await turn();
      order.push('between');
    });
    const second = call().then(() => order.push('second'));
    steps.end();
    await between;
    await expect.poll(() => steps.groups).toEqual([1, 1]);
    steps.end();
    await Promise.all([first, second]);
    expect(order).toEqual(['first', 'between', 'second']);
  });

  test('work between two groups that fails fails its caller only', async () => {
    const { steps, queue, call } = started();
    await expect(queue.between(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const late = call(1);
    await expect.poll(() => steps.groups).toEqual([1]);
    steps.end();
    expect(await late).toBe(1);
  });
});

test('a call that follows the end of the work between two groups is carried out', async () => {
  const { steps, queue, call } = started();
  // The queue comes to its end some microtasks after the work.
  for (let microtasks = 0; microtasks < 20; microtasks++) {
    await queue.between(() => Promise.resolve());
    for (let n = 0; n < microtasks; n++) await Promise.resolve();
    const late = call(microtasks);
    await expect.poll(() => steps.groups.length).toBe(microtasks + 1);
    steps.end();
    expect(await late).toBe(microtasks);
  }
});

describe('a record of a reservation that is closed', () => {
  const complete = completeWork(nothing, () => result(done('recorded', [])));
  const notOpen = new EstuaryError(500, 'RESERVATION_NOT_OPEN', 'the certificate could not be recorded');
  const writer: Writer = { carryOut: (calls) => Promise.resolve(calls.map(() => ({ error: notOpen }))) };

  test('is rejected with 503 at a node among several: another one closed it, and the request may be repeated', async () => {
    const record = new WriteQueue(writer, { isHeld: () => true }).callOf(complete);
    await expect(record()).rejects.toMatchObject({ status: 503, code: 'NODE_LEASE_LOST' });
  });

  test('is a defect at a single node, and for any other operation', async () => {
    await expect(new WriteQueue(writer, {}).callOf(complete)()).rejects.toBe(notOpen);
    const other = write(nothing, () => result(done(undefined, [])));
    await expect(new WriteQueue(writer, { isHeld: () => true }).callOf(other)()).rejects.toBe(notOpen);
  });
});

test('more calls than the store can queue are rejected at once with 503, the others are served', async () => {
  const { steps, call } = started();
  const results = Array.from({ length: 10_001 }, () => call('done'));
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
