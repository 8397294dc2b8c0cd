/** The settings of V8 take effect in a process that has already started. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { NODE } from '../support/server-process.ts';

/** Collections of the young generation while some MiB of objects are created, of which a few stay. */
function collections(prepare: string): number {
  const program = `
    import { prepareHeapForRequests } from '${new URL('../../src/process/heap.ts', import.meta.url).href}';
    ${prepare}
    const kept = [];
    for (let i = 0; i < 1e6; i++) {
      const made = { i, text: 'x' + i };
      if (i % 97 === 0) kept[(i / 97) % 3000] = { made, list: [i, i + 1, i + 2] };
    }`;
  const output = execFileSync(NODE, ['--trace-gc', '--input-type=module', '--eval', program], { encoding: 'utf8' });
  return output.match(/Scavenge/g)?.length ?? 0;
}

test('a process for requests collects its young generation less often', () => {
  expect(collections('prepareHeapForRequests();')).toBeLessThan(collections('') / 2);
});
