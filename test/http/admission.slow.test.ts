/** [limits] of requests, whatever the clock says. */
import { expect, test } from 'vitest';
import { ActiveRequests, RateLimits } from '../../src/http/admission.ts';

/** How many of so many requests come in. */
const admitted = (limits: RateLimits, address: string, count: number): number =>
  Array.from({ length: count }, () => limits.take(address)).filter((wait) => wait === undefined).length;

test('absent, requests are unlimited', () => {
  const limits = new RateLimits({}, () => 0);
  expect(admitted(limits, 'a', 100_000)).toBe(100_000);
});

test('from one address at most twice the rate in a burst, then the rate; others have their own', () => {
  let now = 0;
  const limits = new RateLimits({ requests_per_second_per_address: 5 }, () => now);
  expect(admitted(limits, 'a', 100)).toBe(10);
  expect(admitted(limits, 'b', 100)).toBe(10);
  now = 1000;
  expect(admitted(limits, 'a', 100)).toBe(5);
  now = 60_000;
  expect(admitted(limits, 'a', 100)).toBe(10);
});

test('in all, whatever the addresses', () => {
  let now = 0;
  const limits = new RateLimits({ requests_per_second: 3 }, () => now);
  expect(Array.from({ length: 50 }, (_, i) => limits.take(`a${i}`)).filter((wait) => wait === undefined)).toHaveLength(
    6,
  );
  now = 2000;
  expect(admitted(limits, 'x', 50)).toBe(6);
});

test('Retry-After is whole seconds, after which a request comes in', () => {
  let now = 0;
  const limits = new RateLimits({ requests_per_second_per_address: 1 }, () => now);
  expect([limits.take('a'), limits.take('a'), limits.take('a')]).toEqual([undefined, undefined, 1]);
  now = 1000;
  expect(limits.take('a')).toBeUndefined();
});

test('a flood from ever new addresses is remembered in bounded memory', () => {
  const limits = new RateLimits({ requests_per_second_per_address: 1 }, () => 0);
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 500_000; i++) limits.take(`2001:db8:${i}::/64`);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 << 20);
});

test('so many requests are in hand at a time, one more is refused at once', async () => {
  const activeRequests = new ActiveRequests();
  const { promise, resolve } = Promise.withResolvers<string>();
  const begun = Array.from({ length: 256 }, (_, i) => activeRequests.run({}, `192.0.2.${i}`, () => promise));
  await expect(activeRequests.run({}, '198.51.100.1', () => promise)).rejects.toMatchObject({
    status: 503,
    code: 'OVERLOADED',
  });
  resolve('done');
  await Promise.all(begun);
  expect(await activeRequests.run({}, '198.51.100.1', () => promise)).toBe('done');
});

test('a connection counts once, however many requests it sends without waiting', async () => {
  const activeRequests = new ActiveRequests();
  const { promise, resolve } = Promise.withResolvers<string>();
  const one = {};
  const begun = Array.from({ length: 300 }, () => activeRequests.run(one, '192.0.2.0', () => promise));
  begun.push(...Array.from({ length: 255 }, (_, i) => activeRequests.run({}, `192.0.2.${i + 1}`, () => promise)));
  await expect(activeRequests.run({}, '198.51.100.1', () => promise)).rejects.toMatchObject({ code: 'OVERLOADED' });
  resolve('done');
  expect(await Promise.all(begun)).toHaveLength(555);
  expect(await activeRequests.run(one, '192.0.2.0', () => promise)).toBe('done');
});
