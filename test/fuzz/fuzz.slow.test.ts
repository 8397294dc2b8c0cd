/** Ten seconds of `scripts/fuzz`, shared by all parsers. The nightly run fuzzes for an hour. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { runAny, type CommandResult } from '../support/command.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { ROOT } from '../support/root.ts';
import { TARGETS } from './targets.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const fuzz = (...args: readonly string[]): Promise<CommandResult> =>
  runAny(process.execPath, ['scripts/lib/fuzz.ts', '--findings', folder.file('findings'), ...args], {
    cwd: ROOT,
    // V8 counts blocks only of what it compiles itself.
    env: { NODE_DISABLE_COMPILE_CACHE: '1' },
    timeout: 600_000,
  });

test('a seeded run of the fuzzer finds nothing in any parser', { timeout: 600_000 }, async () => {
  const { code, output } = await fuzz('--seconds', '10', '--seed', '1', '--cpu-factor', '10');
  expect(output).not.toContain('FINDING');
  const sound = [...output.matchAll(/^([a-z]+): .* [1-9][0-9]* inputs .* 0 findings$/gm)].map(([, name]) => name);
  expect(sound).toEqual(Object.keys(TARGETS));
  expect(code).toBe(0);
});

test('what a run finds can be read again', async () => {
  mkdirSync(folder.file('replayed'));
  const input = Buffer.from('"').toString('base64');
  const file = folder.file('replayed/finding.json');
  writeFileSync(file, JSON.stringify({ target: 'configuration', seed: 1, what: 'TypeError: x', input }));
  expect(await fuzz('--replay', file)).toMatchObject({ code: 0 });
});

test('inputs that reached something new are kept, and begin the next run', async () => {
  const corpus = folder.file('corpus');
  const run = (): Promise<CommandResult> => fuzz('--target', 'body', '--seconds', '1', '--corpus', corpus);
  expect(await run()).toMatchObject({ code: 0 });
  const kept = readdirSync(`${corpus}/body`).length;
  expect(kept).toBeGreaterThan(0);
  expect(await run()).toMatchObject({ code: 0 });
});
