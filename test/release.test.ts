/** `scripts/release --check`: a release needs a clean tree, and a version on which package.json, lock file, CHANGELOG and tags agree. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from './support/openssl.ts';
import { ROOT } from './support/root.ts';

const folder = temporaryFolder();
afterAll(folder.remove);
let checkout = '';

function git(...args: readonly string[]): void {
  const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];
  execFileSync('git', [...identity, ...args], { cwd: checkout, stdio: 'ignore' });
}

/** Writes the files of a release and commits them. */
function commit(
  version: string,
  { locked = version, changelog = `## [${version}] - 2026-11-24\n\n- A change.\n` } = {},
): void {
  const lock = { version: locked, packages: { '': { version: locked } } };
  writeFileSync(join(checkout, 'package.json'), JSON.stringify({ version }));
  writeFileSync(join(checkout, 'package-lock.json'), JSON.stringify(lock));
  writeFileSync(join(checkout, 'CHANGELOG.md'), `# Changelog\n\n${changelog}`);
  git('add', '--all');
  git('commit', '--message', 'a release');
}

function check(): { readonly status: number | null; readonly stderr: string } {
  return spawnSync('scripts/release', ['--check'], { cwd: checkout, encoding: 'utf8' });
}

let number = 0;
beforeEach(() => {
  checkout = folder.file(`checkout-${(number += 1)}`);
  mkdirSync(join(checkout, 'scripts/lib'), { recursive: true });
  for (const file of ['scripts/release', 'scripts/lib/prepare.sh']) cpSync(join(ROOT, file), join(checkout, file));
  git('init', '--quiet');
});

test.each(['0.2.0', '1.0.0-rc.1'])('the version %s with its section of the CHANGELOG can be released', (version) => {
  commit(version);
  const { status, stderr } = check();
  expect([status, stderr]).toEqual([0, `# Version ${version}, tree and CHANGELOG agree.\n`]);
});

test.each<[string, () => void, string]>([
  ['a development version', () => commit('0.2.0-dev'), 'has the version 0.2.0-dev'],
  ['another version in the lock file', () => commit('0.2.0', { locked: '0.1.0' }), '0.1.0 and 0.1.0'],
  ['an unreleased section', () => commit('0.2.0', { changelog: '## [Unreleased]\n\n- A.\n' }), '"## [Unreleased]"'],
  [
    'a section without changes',
    () => commit('0.2.0', { changelog: '## [0.2.0] - 2026-11-24\n\n## [0.1.0] - 2026-11-23\n\n- A.\n' }),
    'lists no changes of 0.2.0',
  ],
  [
    'a change that is not committed',
    () => {
      commit('0.2.0');
      writeFileSync(join(checkout, 'new'), '');
    },
    'the tree has changes',
  ],
  [
    'a version that is tagged',
    () => {
      commit('0.2.0');
      git('tag', 'v0.2.0');
    },
    'the tag v0.2.0 exists',
  ],
])('%s is refused', (_, prepare, problem) => {
  prepare();
  const { status, stderr } = check();
  expect(status).toBe(1);
  expect(stderr).toContain(problem);
});
