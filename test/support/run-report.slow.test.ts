import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from './root.ts';

const SKIPPING = `
import { expect, test } from ${JSON.stringify(join(ROOT, 'node_modules/vitest/dist/index.js'))};
import { recordSkip } from ${JSON.stringify(join(ROOT, 'test/support/requires.ts'))};
recordSkip('no such part here');
test.skipIf(true)('left out', () => { expect(1).toBe(2); });
test('runs', () => { expect(1).toBe(1); });
`;
const ABOUT_FILES = `
import { expect, test } from ${JSON.stringify(join(ROOT, 'node_modules/vitest/dist/index.js'))};
import { requires } from ${JSON.stringify(join(ROOT, 'test/support/requires.ts'))};
process.env.ESTUARY_TEST_STORE = 'postgres';
test.skipIf(!requires('storeInFile'))('left out', () => { expect(1).toBe(2); });
`;
const FAILING = `
import { describe, expect, test } from ${JSON.stringify(join(ROOT, 'node_modules/vitest/dist/index.js'))};
describe('a rule (RFC 7030)', () => {
  test("isn't kept", () => { expect(1).toBe(2); });
  test('is kept', () => { expect(1).toBe(1); });
});
`;
const REJECTING = `
import { expect, test } from ${JSON.stringify(join(ROOT, 'node_modules/vitest/dist/index.js'))};
test('passes', async () => {
  void Promise.reject(new Error('nobody waits for this'));
  await new Promise(setImmediate);
  expect(1).toBe(1);
});
`;
const UNPREPARED = `
import { afterAll, describe, expect, test } from ${JSON.stringify(join(ROOT, 'node_modules/vitest/dist/index.js'))};
describe('a part', () => {
  afterAll(() => { throw new Error('the folder is not empty'); });
  test('passes', () => { expect(1).toBe(1); });
});
`;
const SILENT = `
import { expect, test } from ${JSON.stringify(join(ROOT, 'node_modules/vitest/dist/index.js'))};
test.skipIf(true)('left out without a word', () => { expect(1).toBe(2); });
`;

describe('the summary of a run', () => {
  let folder = '';

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'estuary-run-report-'));
    writeFileSync(join(folder, 'skipping.test.mjs'), SKIPPING);
    writeFileSync(join(folder, 'silent.test.mjs'), SILENT);
    writeFileSync(join(folder, 'failing.test.mjs'), FAILING);
    writeFileSync(join(folder, 'rejecting.test.mjs'), REJECTING);
    writeFileSync(join(folder, 'unprepared.test.mjs'), UNPREPARED);
    writeFileSync(join(folder, 'files.test.mjs'), ABOUT_FILES);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const failed = (): string => join(folder, 'failed');

  function run(file: string, ci: string, ...more: string[]): { status: number | null; output: string } {
    const vitest = join(ROOT, 'node_modules/vitest/dist/cli.js');
    const report = join(ROOT, 'test/support/run-report.ts');
    const env = { ...process.env, CI: ci, NO_COLOR: '1', ESTUARY_FAILED_TESTS: failed() };
    writeFileSync(failed(), '');
    const args = [vitest, 'run', '--root', folder, '--reporter', 'default', '--reporter', report, file, ...more];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 100_000 });
    return { status, output: stdout + stderr };
  }

  test('names the file and the recorded reason, and the run passes', () => {
    const { status, output } = run('skipping', '');
    expect(output).toMatch(/skipping\.test\.mjs \(1 test\): no such part here/);
    expect(status).toBe(0);
  });

  test('with CI=true a missing part fails the run', () => {
    const { status, output } = run('skipping', 'true');
    expect(output).toContain('CI=true, and this machine cannot run these tests: no such part here');
    expect(status).toBe(1);
  });

  test('with CI=true what is about stores in files is left out of a run with PostgreSQL, and listed', () => {
    const { status, output } = run('files', 'true');
    expect(output).toMatch(/files\.test\.mjs \(1 test\): about stores in files/);
    expect(status).toBe(0);
  });

  test('with CI=true a test skipped without a word fails the run', () => {
    const { status, output } = run('silent', 'true');
    expect(output).toMatch(/silent\.test\.mjs \(1 test\): no reason given/);
    expect(status).toBe(1);
    expect(readFileSync(failed(), 'utf8')).toBe(
      'skipped, although CI=true: silent.test.mjs (1 test): no reason given\n',
    );
  });

  test('tests that were not asked for by name are not listed', () => {
    const { status, output } = run('skipping', '', '--testNamePattern', 'runs');
    expect(output).not.toContain('Skipped');
    expect(status).toBe(0);
  });

  test('a failure is listed with the command that runs it alone, and the counts close the summary', () => {
    const { status, output } = run('failing', '');
    const command = /\.\/scripts\/test failing\.test\.mjs -t '(.*)'$/m.exec(output)?.[1];
    expect(command).toBe(String.raw`a rule \(RFC 7030\) > isn'\''t kept`);
    expect(output).toMatch(/^1 passed, 1 failed, 0 skipped$/m);
    expect(status).toBe(1);
    const alone = run('failing', '', '-t', command?.replaceAll(String.raw`'\''`, "'") ?? '');
    expect(alone.output).toMatch(/^0 passed, 1 failed$/m);
  });

  test('an error outside of tests is listed with its file, and fails the run', () => {
    const { status, output } = run('rejecting', '');
    expect(output).toMatch(/^1 passed, 1 failed, 0 skipped$/m);
    expect(readFileSync(failed(), 'utf8')).toMatch(
      /^rejecting\.test\.mjs: Unhandled Rejection.*: nobody waits for this/,
    );
    expect(status).toBe(1);
  });

  test('a failure before or after tests is listed', () => {
    const { status, output } = run('unprepared', '');
    expect(output).toMatch(/^1 passed, 1 failed, 0 skipped$/m);
    expect(readFileSync(failed(), 'utf8')).toBe(
      'unprepared.test.mjs: before or after a part: the folder is not empty\n',
    );
    expect(status).toBe(1);
  });

  test('the slowest files are listed', () => {
    expect(run('.test.', '').output).toMatch(/Slowest files:\n( +\d+\.\d s {2}\w+\.test\.mjs\n){6}/);
  });
});
