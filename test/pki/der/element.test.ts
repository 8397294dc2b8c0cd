import { describe, expect, test } from 'vitest';
import { DerError, sequence } from '../../../src/pki/der/der.ts';
import { requireDer } from '../../../src/pki/der/element.ts';

const nested = (depth: number): Buffer => (depth === 0 ? Buffer.from('0500', 'hex') : sequence(nested(depth - 1)));

describe('X.690 §10: one DER value, all the way down', () => {
  test.each([
    ['a NULL', '0500'],
    ['an empty sequence', '3000'],
    ['a sequence of sets', '300431020500'],
    ['a constructed context tag', 'a003020105'],
    ['a primitive context tag of any octets', '8003ffffff'],
    ['an EXTERNAL', '28020500'],
  ])('%s', (_, hex) => {
    expect(() => requireDer(Buffer.from(hex, 'hex'))).not.toThrow();
  });

  test.each([
    ['nothing', ''],
    ['two values', '05000500'],
    ['half a value', '3003020105ff'],
    ['half a value within', '30020409'],
    ['an indefinite length', '30800000'],
    ['a length that is not minimal', '04810101'],
    ['a string in pieces', '2403040101'],
    ['a primitive sequence', '1000'],
    ['an end of contents', '0000'],
    ['an end of contents within', '30020000'],
    ['a tag of more octets', '1f8101'],
  ])('not %s', (_, hex) => {
    expect(() => requireDer(Buffer.from(hex, 'hex'))).toThrow(DerError);
  });

  test('not nested beyond any use', () => {
    expect(() => requireDer(nested(15))).not.toThrow();
    expect(() => requireDer(nested(16))).toThrow(/nested too deep/);
  });
});
