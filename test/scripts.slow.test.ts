/** With --help, every script prints its usage and does nothing else. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runAny } from './support/command.ts';
import { ROOT } from './support/root.ts';

const FOLDER = join(ROOT, 'scripts');
const isScript = (name: string): boolean => {
  const { mode } = statSync(join(FOLDER, name));
  return /^[a-z-]+$/.test(name)
    ? (mode & 0o111) !== 0 && !statSync(join(FOLDER, name)).isDirectory()
    : name.endsWith('.ts');
};

test.each(readdirSync(FOLDER).filter(isScript))('scripts/%s --help prints its usage and exits with 0', async (name) => {
  const file = join(FOLDER, name);
  const [command, args] = name.endsWith('.ts') ? [process.execPath, [file, '--help']] : [file, ['--help']];
  const { code, output } = await runAny(command, args, { cwd: ROOT });
  expect(output.toLowerCase()).toContain(`scripts/${name}`);
  expect([code, output.match(/# (Building|Installing)/)]).toEqual([0, null]);
});
