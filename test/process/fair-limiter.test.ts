/** Fair turns: no key delays another one by the number of its callers. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { FairLimiter, NoPermitError, type Release } from '../../src/process/fair-limiter.ts';
import { runForRequest } from '../../src/request-context.ts';

/** Callers in the order in which they got a permit; `next` gives the oldest permit back. */
function turns(limiter: FairLimiter) {
  const order: string[] = [];
  const held: Release[] = [];
  const rejected: string[] = [];
  return {
    order,
    rejected,
    ask(key: string, name = key, options: { urgent?: boolean; waitMs?: number } = {}): void {
      limiter.acquire({ key, ...options }).then(
        (release) => {
          order.push(name);
          held.push(release);
        },
        () => void rejected.push(name),
      );
    },
    async next(): Promise<void> {
      held.shift()?.();
      await settled();
    },
    async all(): Promise<void> {
      while (held.length > 0) await this.next();
    },
  };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a fair limiter', () => {
  test('120 callers of one key delay the first of another key by one turn', async () => {
    const queue = turns(new FairLimiter({ concurrency: 1, queue: 256 }));
    for (let i = 0; i < 120; i++) queue.ask('flood');
    queue.ask('other');
    await settled();
    await queue.next();
    await queue.next();
    expect(queue.order).toEqual(['flood', 'flood', 'other']);
  });

  test('keys take turns, and the callers of one key keep their order', async () => {
    const queue = turns(new FairLimiter({ concurrency: 1, queue: 256 }));
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) queue.ask(name[0] ?? '', name);
    await settled();
    await queue.all();
    expect(queue.order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  test('a limit per key leaves a permit to other keys', async () => {
    const queue = turns(new FairLimiter({ concurrency: 3, queue: 256, perKey: { concurrency: 2, queue: 256 } }));
    for (let i = 0; i < 120; i++) queue.ask('flood');
    await settled();
    queue.ask('other');
    await settled();
    expect(queue.order).toEqual(['flood', 'flood', 'other']);
    await queue.next();
    expect(queue.order.at(-1)).toBe('flood');
  });

  test('one key may wait only up to its own limit', async () => {
    const queue = turns(new FairLimiter({ concurrency: 1, queue: 256, perKey: { concurrency: 1, queue: 2 } }));
    for (const name of ['a1', 'a2', 'a3', 'a4']) queue.ask('a', name);
    queue.ask('b');
    await settled();
    expect(queue.rejected).toEqual(['a4']);
    await queue.all();
    expect(queue.order).toEqual(['a1', 'b', 'a2', 'a3']);
  });

  test('in a full queue, a key with few callers displaces the newest of the key with the most', async () => {
    const queue = turns(new FairLimiter({ concurrency: 1, queue: 3 }));
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) queue.ask('a', name);
    await settled();
    queue.ask('b');
    await settled();
    expect(queue.rejected).toEqual(['a5', 'a4']);
    queue.ask('c');
    await settled();
    expect(queue.rejected).toEqual(['a5', 'a4', 'a3']);
    // Now each key has one caller that waits.
    queue.ask('d');
    queue.ask('a', 'a6');
    await settled();
    expect(queue.rejected).toEqual(['a5', 'a4', 'a3', 'd', 'a6']);
    await queue.all();
    expect(queue.order).toEqual(['a1', 'a2', 'b', 'c']);
  });

  test('an urgent caller goes first and is never rejected', async () => {
    const queue = turns(new FairLimiter({ concurrency: 1, queue: 1 }));
    for (const name of ['a1', 'a2', 'a3']) queue.ask('a', name);
    queue.ask('b', 'urgent', { urgent: true });
    await settled();
    await queue.all();
    expect([queue.order, queue.rejected]).toEqual([['a1', 'urgent', 'a2'], ['a3']]);
  });

  test('a caller that waits too long leaves the queue', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const limiter = new FairLimiter({ concurrency: 1, queue: 8 });
      const release = await limiter.acquire({ key: 'a' });
      const late = limiter.acquire({ key: 'b', waitMs: 20 });
      const patient = limiter.acquire({ key: 'c', waitMs: 100 });
      vi.advanceTimersByTime(20);
      await expect(late).rejects.toThrow(new NoPermitError('no permit within 20 ms'));
      release();
      (await patient)();
      expect([limiter.waiting, limiter.keys]).toEqual([0, 0]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a second release gives nothing back', async () => {
    const limiter = new FairLimiter({ concurrency: 1, queue: 0 });
    const release = await limiter.acquire();
    release();
    const other = await limiter.acquire();
    release();
    await expect(limiter.acquire()).rejects.toBeInstanceOf(NoPermitError);
    other();
  });

  test('the key is the party of the request: its requester, else its address', async () => {
    const limiter = new FairLimiter({ concurrency: 1, queue: 8 });
    const order: string[] = [];
    const ask = (party: string): Promise<void> =>
      runForRequest({ requestId: party, party }, () =>
        limiter.run(async () => {
          order.push(party);
          await settled();
        }),
      );
    await Promise.all([...Array.from({ length: 5 }, () => ask('flood')), ask('other'), limiter.run(settled)]);
    expect(order).toEqual(['flood', 'flood', 'other', 'flood', 'flood', 'flood']);
  });

  test('any order of callers: the limits hold, all who wait come to an end, and nothing is left', async () => {
    const caller = fc.record({ key: fc.constantFrom('a', 'b', 'c'), urgent: fc.boolean(), fails: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        fc.array(caller, { maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        fc.nat({ max: 8 }),
        fc.integer({ min: 1, max: 4 }),
        async (callers, concurrency, queue, ofKey) => {
          const limiter = new FairLimiter({ concurrency, queue, perKey: { concurrency: ofKey, queue } });
          const active = new Map<string, number>();
          const count = (key: string, change: 1 | -1): number => {
            const own = (active.get(key) ?? 0) + change;
            active.set(key, own);
            return own;
          };
          let [all, most] = [0, 0];
          const calls = callers.map(({ key, urgent, fails }) =>
            limiter.run(
              async () => {
                const own = count(key, 1);
                most = Math.max(most, ++all);
                if (!callers.some((caller) => caller.urgent)) expect(own).toBeLessThanOrEqual(ofKey);
                await settled();
                count(key, -1);
                all -= 1;
                if (fails) throw new Error('failed');
              },
              { key, urgent },
            ),
          );
          const rejected = (await Promise.allSettled(calls)).filter(
            (call) => call.status === 'rejected' && call.reason instanceof NoPermitError,
          );
          expect(most).toBeLessThanOrEqual(concurrency);
          expect([limiter.waiting, limiter.keys, all]).toEqual([0, 0, 0]);
          expect(callers.length - rejected.length).toBeGreaterThanOrEqual(Math.min(callers.length, 1));
        },
      ),
      { numRuns: 200 },
    );
  });
});
