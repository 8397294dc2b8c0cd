/** thisUpdate is early for relying parties whose clock is late, and never before what it tells. */
import { expect, test } from 'vitest';
import { backdated } from '../../src/publication/clocks.ts';

const SIGNED = 1_800_000_000_000;

test.each([
  ['a minute before the signing', [], SIGNED - 60_000],
  ['a minute before, after an older revocation', [SIGNED - 90_000], SIGNED - 60_000],
  ['the second of the newest revocation', [SIGNED - 9_500, SIGNED - 30_000], SIGNED - 10_000],
  ['that of the previous list', [SIGNED - 59_000], SIGNED - 59_000],
  ['never after the signing', [SIGNED + 5_000], SIGNED],
])('%s', (_, atLeast, expected) => {
  expect(backdated(SIGNED, ...atLeast)).toBe(expected);
});
