import { expect, test } from 'vitest';
import { editDistance, nearest } from '../../src/config/nearest.ts';
import { wholeMatch } from '../../src/config/pattern.ts';

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

test.each([
  ['dev-[0-9]+', 'dev-1', true],
  ['dev-[0-9]+', 'dev-1.evil', false],
  ['dev-[0-9]+', 'xdev-1', false],
  ['a|b', 'ab', false],
  ['a|b', 'b', true],
  ['a', 'a\n', false],
])('the pattern %s matches the whole of "%s": %s', (pattern, value, matches) => {
  expect(wholeMatch(pattern).test(value)).toBe(matches);
});
