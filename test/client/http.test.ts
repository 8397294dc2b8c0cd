/** RFC 7030 §3.2: headers between an EST client and its server. */
import { describe, expect, test } from 'vitest';
import { authorization, type Credentials } from '../../src/client/http/authentication.ts';
import { estBase } from '../../src/client/http/urls.ts';
import { parseChallenges } from '../../src/est-protocol/authentication.ts';
import { parseRetryAfter } from '../../src/retry-after.ts';

const NOW = Date.UTC(2026, 10, 22);
const WITH_PASSWORD: Credentials = {
  username: 'Mufasa',
  password: () => Promise.resolve('Circle of Life'),
  kerberos: false,
  bearer: undefined,
};
const REQUEST = { method: 'GET', path: '/dir/index.html', host: 'localhost' };
const answer = (header: string | undefined, credentials = WITH_PASSWORD) =>
  authorization(header, credentials, REQUEST, (count) => Buffer.alloc(count, 0xab));

describe('RFC 7030 §3.2.3: HTTP-based client authentication', () => {
  test('Basic', async () => {
    expect(await answer('Basic realm="est"')).toBe(`Basic ${Buffer.from('Mufasa:Circle of Life').toString('base64')}`);
  });

  test('Digest before Basic, with SHA-256 or MD5', async () => {
    const header =
      'Basic realm="a, b", Digest realm="est", qop="auth, auth-int", algorithm=SHA-256, nonce="n=1", opaque="o"';
    expect(await answer(header)).toMatch(
      /^Digest username="Mufasa", realm="est", nonce="n=1", uri="\/dir\/index.html", response="[0-9a-f]{64}", algorithm=SHA-256, opaque="o", qop=auth, nc=00000001, cnonce="(ab){16}"$/,
    );
  });

  test('a scheme that is not known, or a hash, or nothing to say: no answer', async () => {
    for (const header of [undefined, '', 'Bearer', 'Digest realm="a", nonce="b", algorithm=SHA-512-256', 'Negotiate'])
      expect(await answer(header)).toBeUndefined();
    expect(await answer('Basic realm="est"', { ...WITH_PASSWORD, password: undefined })).toBeUndefined();
  });

  test('several challenges in one header are told apart', () => {
    expect(parseChallenges('Negotiate, Basic realm="a \\"b\\""').map(({ scheme }) => scheme)).toEqual([
      'negotiate',
      'basic',
    ]);
  });
});

describe('RFC 7030 §4.2.3: Retry-After', () => {
  test.each([
    ['120', 120],
    ['0', 1],
    ['Sun, 22 Nov 2026 00:01:00 GMT', 60],
    ['Sun, 22 Nov 2020 00:01:00 GMT', 1],
    ['Sunday, 22-Nov-26 00:01:00 GMT', 60],
    ['Sun Nov 22 00:01:00 2026', 60],
    [' 120 ', 120],
    ['99999999', 604_800],
    ['99999999999999999999', 604_800],
    ['soon', undefined],
    ['soon 5', undefined],
    ['1.5', undefined],
    ['-5', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('%j is %j seconds', (header, seconds) => {
    expect(parseRetryAfter(header, NOW)).toBe(seconds);
  });
});

describe('RFC 7030 §3.1: the URI of the server', () => {
  test.each([
    ['https://est.example', undefined, 'https://est.example/.well-known/est'],
    ['https://est.example:8443/', 'dev', 'https://est.example:8443/.well-known/est/dev'],
    ['https://est.example/.well-known/est/', undefined, 'https://est.example/.well-known/est'],
    [
      'https://est.example/.well-known/est/arbitraryLabel1',
      undefined,
      'https://est.example/.well-known/est/arbitraryLabel1',
    ],
  ])('%s and %j', (url, label, expected) => {
    expect(estBase(url, label).href).toBe(expected);
  });

  test.each(['http://est.example', 'est.example', ''])('RFC 7030 §3.3: %j is not an https URL', (url) => {
    expect(() => estBase(url, undefined)).toThrow('is not an https URL');
  });
});
