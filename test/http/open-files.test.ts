/** A process never runs out of files because of its connections. */
import { expect, test } from 'vitest';
import { affordable, openFileLimit } from '../../src/http/open-files.ts';

test.each([
  ['plenty of files', 3, 100_000, { total: 4096, perAddress: 1024 }],
  ['unlimited', 3, undefined, { total: 4096, perAddress: 1024 }],
  ['1,024 for two listeners', 2, 1024, { total: 448, perAddress: 448 }],
  ['1,024 for three listeners', 3, 1024, { total: 298, perAddress: 298 }],
  ['hardly any', 3, 100, { total: 1, perAddress: 1 }],
])('the limit of open files bounds the connections: %s', (_name, listeners, openFiles, limits) => {
  expect(affordable({ total: 4096, perAddress: 1024 }, listeners, openFiles)).toEqual(limits);
});

test('the limit of this process is known', () => {
  expect(openFileLimit()).toBeGreaterThan(100);
});
