/** The single-file executable, which includes Node.js. */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runAny, runText } from '../support/command.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { ROOT } from '../support/root.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test('scripts/build-sea makes an executable of the client that needs no other files', async () => {
  const file = folder.file('estuary');
  await runText(join(ROOT, 'scripts/build-sea'), [file], { timeout: 300_000 });
  expect(statSync(file).size).toBeLessThan(200 * 1024 * 1024);
  const env = { PATH: '/usr/bin:/bin' };
  expect(execFileSync(file, ['--version'], { env, encoding: 'utf8' })).toMatch(
    /^estuary-client \d+\.\d+\.\d+(?:-dev)?\n$/,
  );
  const { code, output } = await runAny(file, ['client', 'status', '--config', folder.file('client.toml')], { env });
  expect([code, output]).toEqual([2, expect.stringContaining('cannot be read')]);
}, 400_000);
