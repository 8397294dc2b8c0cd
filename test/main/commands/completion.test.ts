/** Completion in real shells, and manual pages that groff accepts, both generated from the command tables. */
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Entry } from '../../../src/main/commands/command.ts';
import { manualPages } from '../../../src/main/commands/help.ts';
import { COMMANDS, NOTES } from '../../../src/main/commands/table.ts';
import { run } from '../../support/command.ts';
import { estuary } from '../../support/local-command.ts';
import { removeFolder } from '../../support/folders.ts';

const has = (program: string): boolean => existsSync(`/usr/bin/${program}`);

/** What a shell offers for the last of some words. */
type Completer = (...words: string[]) => Promise<string[]>;

const scriptOf = async (shell: string): Promise<string> => (await estuary(['completion', shell])).out;

/** `estuary` on the path, which the scripts call. */
const folder = mkdtempSync(join(tmpdir(), 'estuary-completion-'));
afterAll(() => removeFolder(folder));
writeFileSync(join(folder, 'estuary'), `#!/bin/sh\nexec ${process.execPath} ${resolve('src/server.ts')} "$@"\n`, {
  mode: 0o755,
});
const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}` };

const lines = (output: Buffer): string[] =>
  output
    .toString()
    .split('\n')
    .filter((line) => line !== '');

const bash: Completer = async (...words) => {
  const script = `${await scriptOf('bash')}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_estuary
printf '%s\\n' "\${COMPREPLY[@]}"`;
  return lines(await run('bash', ['--norc', '-uc', script, 'bash', 'estuary', ...words], { cwd: '/etc/ssl', env }));
};

/** zsh itself, but for the functions of its completion system, which want a terminal. */
const zsh: Completer = async (...words) => {
  const script = `compdef() { : }
_describe() { print -l -- \${found%%:*} }
_files() { print -- certs }
${await scriptOf('zsh')}
words=("$@") CURRENT=$#
_estuary`;
  const typed = words.at(-1) ?? '';
  const offered = lines(await run('zsh', ['-fc', script, 'zsh', 'estuary', ...words], { env }));
  return offered.filter((word) => word.startsWith(typed));
};

const fish: Completer = async (...words) => {
  const script = `${await scriptOf('fish')}\ncd /etc/ssl\ncomplete -C "estuary $argv"`;
  const offered = lines(await run('fish', ['--no-config', '-c', script, words.join(' ')], { env }));
  return offered.map((line) => (line.split('\t')[0] ?? '').replace(/\/$/, ''));
};

const SHELLS: readonly (readonly [string, Completer])[] = (
  [
    ['bash', bash],
    ['zsh', zsh],
    ['fish', fish],
  ] as const
).filter(([shell]) => has(shell));

describe.each(SHELLS)('completion in %s', (_, offered) => {
  test('words of commands, those of families too', async () => {
    const [all, admin, families, otp, after] = await Promise.all([
      offered(''),
      offered('adm'),
      offered('admin', 'ot'),
      offered('admin', 'otp', ''),
      offered('admin', '--url', 'otp', 'otp', 'sh'),
    ]);
    expect(all).toEqual(expect.arrayContaining(['serve', 'audit', 'admin', 'client', 'completion']));
    expect([admin, families, after]).toEqual([['admin'], ['otp'], ['show']]);
    expect(otp.toSorted()).toEqual(['bulk', 'create', 'extend', 'list', 'revoke', 'show']);
  });

  test('options of a command, its words, files', async () => {
    const [option, other, words, word, argument, files, text] = await Promise.all([
      offered('admin', 'otp', 'list', '--sta'),
      offered('backup', '--t'),
      offered('admin', 'otp', 'list', '--status', ''),
      offered('admin', 'cert', 'revoke', '00', '--reason', 'keyC'),
      offered('completion', 'f'),
      offered('check', '--config', 'cert'),
      offered('admin', 'otp', 'list', '--client-id', ''),
    ]);
    expect([option, other, word, argument, text]).toEqual([['--status'], ['--to'], ['keyCompromise'], ['fish'], []]);
    expect(words.toSorted()).toEqual(['active', 'consumed', 'expired', 'revoked']);
    expect(files).toContain('certs');
  });
});

test('bash is completed wherever the tests run, and another shell is refused', async () => {
  expect(SHELLS.map(([shell]) => shell)).toContain('bash');
  expect(await estuary(['completion', 'tcsh'])).toMatchObject({ code: 1, out: '' });
});

async function allCommands(entries: readonly Entry[], before: string): Promise<string[]> {
  const lists = entries.map(async (entry) =>
    entry.kind === 'command' ? [`${before}${entry.name}`] : allCommands(await entry.load(), `${before}${entry.name} `),
  );
  return (await Promise.all(lists)).flat();
}

test('manual pages have every command, and groff finds nothing wrong with them', async () => {
  const pages = await manualPages({
    name: 'estuary',
    summary: 'a server',
    version: '1.2.3',
    commands: COMMANDS,
    notes: NOTES,
  });
  expect([...pages.keys()].toSorted()).toEqual(['estuary-admin.1', 'estuary-client.1', 'estuary.1']);
  const texts = await Promise.all(
    [...pages.values()].map(async (input) => {
      if (!has('groff')) return input.replaceAll('\\-', '-');
      const args = ['-man', '-Kutf8', '-Tutf8', '-ww', '-rLL=200n', '-P-cbou'];
      const { stdout, output } = await import('../../support/command.ts').then(({ runAny }) =>
        runAny('groff', args, { input }),
      );
      expect(output).toBe(stdout.toString());
      return stdout.toString();
    }),
  );
  for (const command of await allCommands(COMMANDS, 'estuary ')) expect(texts.join('')).toContain(command);
});
