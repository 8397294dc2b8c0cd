/** One class of errors, whose codes are a union type and a documentation page. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ENTRIES, errorReference } from '../scripts/lib/error-reference.ts';
import {
  badRequest,
  codeOf,
  describe as described,
  errorWith,
  failed,
  forbidden,
  isRefusal,
  isUnauthenticated,
  isUnavailable,
  unauthorized,
  unavailable,
  type EstuaryError,
} from '../src/errors.ts';
import { ERRORS } from '../src/error-codes.ts';
import { ROOT } from './support/root.ts';

const sources = globSync('src/**/*.ts', { cwd: ROOT })
  .filter((file) => !/^src.error-codes\b/.test(file))
  .map((file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const);
const source = sources.map(([, text]) => text).join('\n');

const page = errorReference();

/** IsolatedProcess puts these together. */
const PROCESS_CODE = /^(GSSAPI|PKCS11)_(DOWN|BUSY|FAILED|TIMEOUT)$/;

const codes = Object.entries<number | readonly number[]>(ERRORS);
const entries = Object.values(ENTRIES).flatMap((section) => Object.entries(section));

describe('every error code', () => {
  test.each(codes)('%s is thrown somewhere, with a status of an error', (code, status) => {
    expect(PROCESS_CODE.test(code) || source.includes(`'${code}'`)).toBe(true);
    for (const one of [status].flat()) expect(one >= 400 && one < 600).toBe(true);
  });

  test('is explained once, with a cause and a remedy in one sentence each', () => {
    expect(entries.map(([code]) => code).toSorted()).toEqual(codes.map(([code]) => code).toSorted());
    for (const [code, { cause, remedy }] of entries)
      for (const sentence of [cause, remedy]) expect(sentence, code).toMatch(/^[A-Z].+\.$|^admin\..+\.$/s);
  });

  test('has the public text in its row of docs/reference/errors.md', () => {
    for (const [code] of entries)
      expect(page).toMatch(new RegExp(`^\\| \`${code}\` \\| [0-9, ]+ \\| .+ \\| .+ \\| .+ \\|$`, 'm'));
  });
});

test('docs/reference/errors.md is what the source says (npm run docs:errors)', () => {
  expect(readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8')).toBe(page);
});

test('an unknown code, and a known one with a status that is not its own, do not compile', () => {
  // @ts-expect-error no table has it
  expect(badRequest('NO_SUCH_CODE', 'no').code).toBe('NO_SUCH_CODE');
  // @ts-expect-error it is a 401
  expect(badRequest('OTP_INVALID', 'no').status).toBe(400);
  // @ts-expect-error it is a 415
  expect(errorWith(413, 'CONTENT_CODING_UNSUPPORTED', 'no').status).toBe(413);
  expect(errorWith(415, 'CONTENT_CODING_UNSUPPORTED', 'no').status).toBe(415);
});

describe('what catches an error asks for its kind, not for its status', () => {
  const each: [EstuaryError, boolean, boolean, boolean][] = [
    [badRequest('BODY_EMPTY', ''), true, false, false],
    [unauthorized('OTP_INVALID', ''), true, true, false],
    [forbidden('SAN_MISMATCH', ''), true, false, false],
    [errorWith(415, 'CONTENT_CODING_UNSUPPORTED', ''), true, false, false],
    [failed('STORE_FAILED', ''), false, false, false],
    [errorWith(501, 'OPERATION_OFF', ''), false, false, false],
    [unavailable('STORE_UNAVAILABLE', ''), false, false, true],
  ];

  test.each(each)('$code ($status): refusal %s, unauthenticated %s, unavailable %s', (error, ...kinds) => {
    expect([isRefusal(error), isUnauthenticated(error), isUnavailable(error)]).toEqual(kinds);
  });

  test('an error of another family is of no kind', () => {
    const error = new Error('401');
    expect([isRefusal(error), isUnauthenticated(error), isUnavailable(error)]).toEqual([false, false, false]);
  });

  test('no status steers the flow outside of HTTP', () => {
    // In http/est/route.ts, the status decides which headers the response has. That rule is HTTP's.
    const files = sources.filter(([file]) => file !== join('src', 'http', 'est', 'route.ts'));
    expect(
      files.filter(([, text]) => /\berror\.status (?:[<>]=?|[!=]==) ?\d/.test(text)).map(([file]) => file),
    ).toEqual([]);
  });
});

test('an error with its detail is one sentence', () => {
  expect(described(forbidden('SUBJECT_MISMATCH', 'The subject differs.', { detail: 'CN=a' }))).toBe(
    'The subject differs: CN=a',
  );
});

describe('an error of a file names the path and the reason in words', () => {
  test.each([
    [() => readFileSync('/nonexistent/est.toml'), 'cannot open /nonexistent/est.toml: no such file or directory'],
    [() => readFileSync('/'), 'cannot read: illegal operation on a directory'],
  ])('%s', (read, expected) => {
    let message = '';
    try {
      read();
    } catch (error) {
      message = described(error);
    }
    expect(message).toBe(expected);
  });
});

test.each([
  ['an error of the system', Object.assign(new Error('x'), { code: 'ENOENT' }), 'ENOENT'],
  ['one of ours', unauthorized('LOCKED_OUT', 'x'), 'LOCKED_OUT'],
  ['one without a code', new Error('x'), ''],
  ['one whose code is a number', Object.assign(new Error('x'), { code: 2 }), ''],
  ['a value that is no error', { code: 'ENOENT' }, ''],
  ['nothing', undefined, ''],
])('the code of %s', (_, error, code) => {
  expect(codeOf(error)).toBe(code);
});

test.each([
  ['argon2', 'No native build was found for platform=linux arch=x64\n    loaded from: /app/node_modules/argon2\n', ''],
  [
    'better-sqlite3',
    "Cannot find module '/app/node_modules/better-sqlite3/build/Release/better_sqlite3.node'\nRequire stack:",
    '',
  ],
  ['kerberos', '/app/node_modules/kerberos/build/Release/kerberos.node: invalid ELF header', 'ERR_DLOPEN_FAILED'],
])('a missing binary of %s: the message names the package and the command', (name, message, code) => {
  const error = Object.assign(new Error(message), { code });
  expect(described(error)).toBe(
    `the compiled part of the package ${name} cannot be loaded: ${message.split('\n')[0]}. Run "npm rebuild ${name}", which needs python3, make and g++`,
  );
  expect(described(new Error('Cannot find module /app/node_modules/argon2/x.js'))).toContain('Cannot find module');
});
