import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { atIntervals, every, inTurn } from '../../src/process/turns.ts';

test('of work that comes all at once, some is begun in each turn of the event loop, in the order in which it came', async () => {
  await nextTurn();
  const begun: number[] = [];
  for (let piece = 0; piece < 40; piece++) inTurn(() => begun.push(piece));
  const perTurn: number[] = [begun.length];
  while (begun.length < 40 && perTurn.length < 40) {
    const before = begun.length;
    await nextTurn();
    perTurn.push(begun.length - before);
  }
  expect(perTurn).toEqual([16, 16, 8]);
  expect(begun).toEqual(Array.from({ length: 40 }, (_, piece) => piece));
});

test('a timer that is due does not wait until all of it is done', async () => {
  await nextTurn();
  let done = 0;
  let doneAtTimer = -1;
  setTimeout(() => (doneAtTimer = done), 1);
  for (let piece = 0; piece < 160; piece++)
    inTurn(() => {
      for (const until = performance.now() + 0.5; performance.now() < until;);
      done++;
    });
  while (done < 160) await nextTurn();
  expect(doneAtTimer).toBeGreaterThan(0);
  expect(doneAtTimer).toBeLessThan(160);
});

test('where little comes, nothing waits', async () => {
  for (let turn = 0; turn < 5; turn++) {
    await nextTurn();
    let begun = 0;
    for (let piece = 0; piece < 16; piece++) inTurn(() => begun++);
    expect(begun).toBe(16);
  }
});

test('repeated work begins now or after its first interval, until it is stopped', () => {
  vi.useFakeTimers();
  try {
    const begun: string[] = [];
    const stops = [every(10, () => begun.push('every')), atIntervals(10, () => begun.push('at intervals'))];
    expect(begun).toEqual(['every']);
    vi.advanceTimersByTime(10);
    expect(begun).toEqual(['every', 'every', 'at intervals']);
    for (const stop of stops) stop();
    vi.advanceTimersByTime(100);
    expect(begun).toHaveLength(3);
  } finally {
    vi.useRealTimers();
  }
});
