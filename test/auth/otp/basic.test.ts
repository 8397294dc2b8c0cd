import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { isBasic, parseBasic } from '../../../src/auth/otp/basic.ts';
import { HashingPool } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpPlugin, OtpService } from '../../../src/auth/otp/otp-service.ts';
import type { Store } from '../../../src/store/store.ts';
import { openedIn, T0 } from '../../store/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { INVALID, SETTINGS } from './support.ts';

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');

describe('RFC 7617: what is taken for credentials', () => {
  test.each([
    ['the usual', `Basic ${base64('user:pass')}`, 'user', 'pass'],
    ['the scheme in other case', `bAsIc ${base64('user:pass')}`, 'user', 'pass'],
    ['two spaces', `Basic  ${base64('user:pass')}`, 'user', 'pass'],
    ['no username', `Basic ${base64(':pass')}`, '', 'pass'],
    ['no password', `Basic ${base64('user:')}`, 'user', ''],
    ['colons in the password', `Basic ${base64('user:a:b:')}`, 'user', 'a:b:'],
    ['no padding', `Basic ${base64('user:passw').replace(/=+$/, '')}`, 'user', 'passw'],
    ['UTF-8', `Basic ${base64('gerät:pässword')}`, 'gerät', 'pässword'],
  ])('%s', (_, header, username, password) => {
    expect(isBasic(header)).toBe(true);
    expect(parseBasic(header)).toEqual({ username, password, isUtf8: true });
  });

  test.each([
    ['a name in ISO-8859-1', 'ger\xe4t:pass', 'ger\\xe4t', 'pass'],
    ['a name in windows-1252', '\x80:pass', '\\x80', 'pass'],
    ['a password in ISO-8859-1', 'a:p\xe4:ss', 'a', 'p\\xe4:ss'],
  ])('split at the first colon octet, in any encoding: %s', (_, latin1, username, password) => {
    const header = `Basic ${base64(Buffer.from(latin1, 'latin1'))}`;
    expect(parseBasic(header)).toEqual({ username, password, isUtf8: false });
  });

  test('different octets give different names, also from those of UTF-8', () => {
    const names = ['ger\xe4t', 'ger\xe5t', 'ger\xc3\xa4t', 'ger\\xe4t'.replace('\\', '\xff')].map(
      (latin1) => parseBasic(`Basic ${base64(Buffer.from(`${latin1}:x`, 'latin1'))}`)?.username,
    );
    expect(new Set(names).size).toBe(4);
  });

  test.each([undefined, '', 'Bearer abc', 'Negotiate abc', 'Basically abc', 'Digest username="a"'])(
    '%s is another scheme, or none',
    (header) => expect(isBasic(header)).toBe(false),
  );
});

/** Presented, and no credentials. */
const MALFORMED: readonly [string, string][] = [
  ['the scheme alone', 'Basic'],
  ['the scheme and a space', 'Basic '],
  ['a tab for the space', `Basic\t${base64('user:pass')}`],
  ['no base64', 'Basic !!!!'],
  ['a character too many for base64', `Basic ${base64('user:passw')}A`],
  ['too much padding', `Basic ${base64('user:pas')}====`],
  ['padding in the middle', 'Basic dXNl=jpw'],
  ['base64url', 'Basic _-_-_-_-'],
  ['white space within', 'Basic dXNl cjpw'],
  ['something after it', `Basic ${base64('user:pass')}, realm="est"`],
  ['two credentials', `Basic ${base64('a:b')} ${base64('c:d')}`],
  ['credentials in clear', 'Basic user:pass'],
  ['no colon', `Basic ${base64('userpass')}`],
  ['nothing in it', `Basic ${base64('')}=`],
  ['a NUL', `Basic ${base64('user:pa\0ss')}`],
  ['a line feed', `Basic ${base64('user:pass\n')}`],
  ['a control character in the name', `Basic ${base64('us\x07er:pass')}`],
  ['a C1 control character', `Basic ${base64('user:pa\u0085ss')}`],
  ['a delete character', `Basic ${base64('user:pass\x7f')}`],
  ['UTF-16', `Basic ${base64(Buffer.from('user:pass', 'utf16le'))}`],
  ['a very long password', `Basic ${base64(`user:${'x'.repeat(5000)}`)}`],
  ['a megabyte', `Basic ${base64(Buffer.alloc(1 << 20, 'x'))}`],
  ['a very long run of spaces', `Basic ${' '.repeat(5000)}dXNlcjpw`],
  ['random bytes', `Basic ${base64(Buffer.from('00017f80ff3a', 'hex'))}`],
];

test.each(MALFORMED)('%s are no credentials', (_, header) => {
  expect(parseBasic(header)).toBeUndefined();
});

test('a header has at most 4,096 characters', () => {
  const credentials = `Basic ${base64('user:pass')}`;
  const padded = (length: number): string => credentials.replace(' ', ' '.repeat(1 + length - credentials.length));
  expect(parseBasic(padded(4096))).toEqual({ username: 'user', password: 'pass', isUtf8: true });
  expect(parseBasic(padded(4097))).toBeUndefined();
});

/** Well-formed, and never a token. */
const NO_TOKENS: readonly [string, string][] = [
  ['an empty password', 'user:'],
  ['a short one', 'user:abc'],
  ['one longer than any token', `user:${'a'.repeat(129)}`],
  ['characters outside base62', 'user:aaaaaaaaaaaaaaaaaaa-'],
  ['a space before the token', 'user: aaaaaaaaaaaaaaaaaaa'],
  ['fullwidth digits', 'user:００００００００００００００００００００'],
  ['a selector with SQL', "user:' OR 1=1; DROP TABLE otp --"],
  ['a pattern', 'user:%%%%%%%%%%%%%%%%%%%%'],
];

const NOT_UTF8: readonly [string, string][] = [
  ['a password that is not UTF-8', `Basic ${base64(Buffer.from('757365723aff', 'hex'))}`],
  ['a lone surrogate in UTF-8', `Basic ${base64(Buffer.from('757365723aeda080', 'hex'))}`],
  ['overlong UTF-8', `Basic ${base64(Buffer.from('757365723ac0af', 'hex'))}`],
];

describe('malformed credentials get 401 invalid OTP token and count as a failure', () => {
  const folder = temporaryFolder();
  let store: Store;
  let plugin: OtpPlugin;
  beforeAll(async () => {
    store = await openedIn(folder, Date.now);
    const pool = new HashingPool({ concurrency: 1, queue: 1, retryAfter: 1 });
    plugin = new OtpPlugin(await OtpService.create(store, SETTINGS, pool));
  });
  afterAll(async () => {
    await store.close();
    folder.remove();
  });

  const rows = [
    ...MALFORMED,
    ...NOT_UTF8,
    ...NO_TOKENS.map(([what, text]): [string, string] => [what, `Basic ${base64(text)}`]),
  ];

  test('there are 25 of them and more', () => expect(rows.length).toBeGreaterThanOrEqual(25));

  test.each(rows)('%s', async (what, authorization) => {
    const address = `192.0.2.${rows.findIndex(([other]) => other === what)}`;
    const presented = { authorization, address, peerCertificate: undefined, peerIntermediates: [] };
    const context = {
      operation: 'simpleenroll',
      caLabel: 'devices',
      certificateOnly: false,
      expiredGraceSeconds: 0,
      now: T0,
    };
    for (let i = 0; i < 6; i++)
      await expect(plugin.authenticate(presented, context)).rejects.toMatchObject({ status: 401, message: INVALID });
    await expect(plugin.authenticate(presented, context)).rejects.toMatchObject({
      status: 401,
      message: 'too many failures, locked out',
      retryAfter: 900,
    });
  });
});
