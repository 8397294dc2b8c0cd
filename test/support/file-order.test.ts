/** How many files of a run there are at a time, its parts, and what it shows while it runs. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { costOf, partsOf, workersFor } from './file-order.ts';
import { ROOT } from './root.ts';
import { progressLine } from './run-progress.ts';

test.each([
  { cores: 2, gib: 24, workers: 4 },
  { cores: 2, gib: 8, workers: 4 },
  { cores: 16, gib: 64, workers: 32 },
  { cores: 16, gib: 8, workers: 4 },
  { cores: 1, gib: 1, workers: 1 },
])('$cores cores and $gib GiB of memory run $workers files at the same time', ({ cores, gib, workers }) => {
  expect(workersFor(cores, gib * 2 ** 30)).toBe(workers);
});

const FILES = globSync('test/**/*.test.ts', { cwd: ROOT }).map((file) => {
  const name = /conformance|interop|faults|slow/.test(file) ? 'slow' : /^test\/dogtag/.test(file) ? 'dogtag' : 'shared';
  return { moduleId: join(ROOT, file), project: { name } };
});

test.each([1, 2, 4, 7])(
  '%d parts together are the whole run, each file once, whatever the order they were found in',
  (count) => {
    const parts = partsOf(FILES, count);
    expect(parts).toHaveLength(count);
    expect(parts.flat()).toHaveLength(FILES.length);
    expect(new Set(parts.flat())).toEqual(new Set(FILES));
    expect(partsOf(FILES.toReversed(), count)).toEqual(parts);
  },
);

test('four parts take about the same time, and only the last one needs Dogtag', () => {
  const parts = partsOf(FILES, 4);
  expect(parts.map((part) => part.some(({ project }) => project.name === 'dogtag'))).toEqual([
    false,
    false,
    false,
    true,
  ]);
  const [first = 0, ...others] = parts.map((part) => part.reduce((sum, file) => sum + costOf(file), 0));
  // The first has lint and the other checks.
  expect(Math.max(...others) - Math.min(...others)).toBeLessThan(Math.max(...others) / 10);
  expect(first).toBeLessThan(Math.min(...others));
});

test('a run shows how many of its files are done, the failures, an estimate, and what runs', () => {
  const progress = {
    time: 90_500,
    files: { done: 12, all: 434 },
    part: 0.25,
    failed: 0,
    running: ['a.test.ts', 'b.test.ts'],
  };
  expect(progressLine(progress)).toBe(
    '# tests … 1:30, 12 of 434 files, about 5 minutes left; now a.test.ts, b.test.ts',
  );
  expect(progressLine({ ...progress, part: 0.9, failed: 2 })).toContain(
    '12 of 434 files, 2 failed, about 1 minute left',
  );
  expect(progressLine({ ...progress, part: 0 })).toBe('# tests … 1:30, 12 of 434 files; now a.test.ts, b.test.ts');
});
