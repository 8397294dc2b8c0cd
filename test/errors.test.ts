/** Issue 12.5: one family of errors, whose codes are a union type and a page. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorReference } from '../scripts/lib/error-reference.ts';
import { badRequest, errorWith } from '../src/errors.ts';
import { ERRORS } from '../src/errors/codes.ts';
import type { ErrorEntry } from '../src/errors/table.ts';
import { ROOT } from './support/root.ts';

const source = globSync('src/**/*.ts', { cwd: ROOT })
  .filter((file) => !/^src.errors\b/.test(file))
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

const page = errorReference();

/** IsolatedProcess puts these together. */
const PROCESS_CODE = /^(GSSAPI|PKCS11)_(DOWN|BUSY|FAILED|TIMEOUT)$/;

const entries: readonly (readonly [string, ErrorEntry])[] = Object.entries(ERRORS);

describe('issue 12.5: every error code', () => {
  test.each(entries)('%s is thrown somewhere, with a status of an error, a cause and a remedy', (code, entry) => {
    expect(PROCESS_CODE.test(code) || source.includes(`'${code}'`)).toBe(true);
    for (const status of [entry.status].flat()) expect(status >= 400 && status < 600).toBe(true);
    for (const sentence of [entry.cause, entry.remedy]) expect(sentence).toMatch(/^[A-Z].+\.$|^admin\..+\.$/s);
  });

  test('stands in one table only', () => {
    const names = globSync('src/errors/*.ts', { cwd: ROOT }).flatMap((file) =>
      [...readFileSync(join(ROOT, file), 'utf8').matchAll(/^ {2}([A-Z][A-Z0-9_]+): \{/gm)].map(([, name]) => name),
    );
    expect(names.toSorted()).toEqual(Object.keys(ERRORS).toSorted());
  });

  test('has the public text in its row of docs/errors.md', () => {
    for (const [code] of entries)
      expect(page).toMatch(new RegExp(`^\\| \`${code}\` \\| [0-9, ]+ \\| .+ \\| .+ \\| .+ \\|$`, 'm'));
  });
});

test('issue 12.5: docs/errors.md is what the source says (npm run docs:errors)', () => {
  expect(readFileSync(join(ROOT, 'docs', 'errors.md'), 'utf8')).toBe(page);
});

test('issue 12.5: an unknown code, and a known one with a status that is not its own, do not compile', () => {
  // @ts-expect-error no table has it
  expect(badRequest('NO_SUCH_CODE', 'no').code).toBe('NO_SUCH_CODE');
  // @ts-expect-error it is a 401
  expect(badRequest('OTP_INVALID', 'no').status).toBe(400);
  // @ts-expect-error it is a 415
  expect(errorWith(413, 'CONTENT_ENCODING', 'no').status).toBe(413);
  expect(errorWith(415, 'CONTENT_ENCODING', 'no').status).toBe(415);
});
