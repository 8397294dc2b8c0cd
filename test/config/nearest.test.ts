import { expect, test } from 'vitest';
import { editDistance, nearest } from '../../src/config/nearest.ts';

test.each([
  ['', '', 0],
  ['abc', 'abc', 0],
  ['abc', 'abd', 1],
  ['abc', 'ab', 1],
  ['lenght', 'length', 1],
  ['kitten', 'sitting', 3],
  ['', 'abc', 3],
])('the edit distance of "%s" and "%s" is %i', (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
  expect(editDistance(b, a)).toBe(distance);
});

test('the nearest candidate, whatever the case; none of none', () => {
  expect(nearest('PROT', ['host', 'port'])).toBe('port');
  expect(nearest('x', [])).toBeUndefined();
});
