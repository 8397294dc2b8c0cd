import { describe, expect, test } from 'vitest';

import { NULL, sequence, setOf, utf8String } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import {
  foldedName,
  namesMatch,
  formatName,
  namesEqual,
  parseDistinguishedName,
  parseName,
} from '../../../src/pki/x509/name.ts';
import { attribute } from '../../support/csr.ts';

const cn = (text: string): Buffer => attribute(OID.commonName, utf8String(text));

describe('RFC 5280 §7.1: names as path validation compares them', () => {
  test.each([
    ['CN=Root', 'CN=rOOT', true],
    ['CN=a  b', 'CN=A b', true],
    ['CN=\\ a\\ ', 'CN=A', true],
    ['CN=a+O=b', 'O=B+CN=A', true],
    ['CN=a,O=b', 'O=b,CN=a', false],
    ['CN=ab', 'CN=a b', false],
  ])('%s, %s: %s', (a, b, same) => {
    expect(namesMatch(parseDistinguishedName(a), parseDistinguishedName(b))).toBe(same);
  });

  test('a value that holds what stands between values, or hex, is no other name', () => {
    const one = parseName(sequence(setOf(cn('a\u00012.5.4.3=b'))));
    const two = parseName(sequence(setOf(cn('a'), cn('b'))));
    expect(foldedName(one)).not.toBe(foldedName(two));
    const three = parseName(sequence(setOf(cn('a\u00022.5.4.3=b'))));
    const four = parseName(sequence(setOf(cn('a')), setOf(cn('b'))));
    expect(foldedName(three)).not.toBe(foldedName(four));
    const text = parseName(sequence(setOf(cn('#0500'))));
    const value = parseName(sequence(setOf(attribute(OID.commonName, NULL))));
    expect(foldedName(text)).not.toBe(foldedName(value));
  });
});

const SPACES = [
  ' ',
  '\t',
  '\n',
  '\v',
  '\f',
  '\r',
  '\u0085',
  '\u00a0',
  '\u1680',
  '\u2003',
  '\u2028',
  '\u202f',
  '\u3000',
  '\ufeff',
];

describe('a formatted name is read as the same name, whatever space it has', () => {
  test.each(SPACES.map((space) => [space.codePointAt(0)?.toString(16), space]))('U+%s', (_, space) => {
    for (const text of [
      `${space}a`,
      `a${space}`,
      `a${space}b`,
      space,
      `${space}${space}a${space}${space}`,
      `a\\${space}`,
    ]) {
      const name = parseName(sequence(setOf(cn(text))));
      expect(namesEqual(parseDistinguishedName(formatName(name)), name), JSON.stringify(formatName(name))).toBe(true);
    }
  });
});
