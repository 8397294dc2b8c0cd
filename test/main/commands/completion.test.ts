/** Completion in real shells, and manual pages that groff accepts, both generated from the command tables. */
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../../../src/main/commands/command.ts';
import { manualPages } from '../../../src/main/commands/help.ts';
import { COMMANDS, NOTES } from '../../../src/main/commands/table.ts';
import { run } from '../../support/command.ts';
import { estuary } from './admin/support.ts';

const has = (program: string): boolean => existsSync(`/usr/bin/${program}`);

/** What a shell offers for the last of some words. */
type Completer = (...words: string[]) => Promise<string[]>;

const scriptOf = async (shell: string): Promise<string> => (await estuary(['completion', shell])).out;

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
  return lines(await run('bash', ['--norc', '-uc', script, 'bash', 'estuary', ...words], { cwd: '/etc/ssl' }));
};

/** zsh itself, but for the functions of its completion system, which want a terminal. */
const zsh: Completer = async (...words) => {
  const script = `compdef() { : }
_describe() { print -l -- \${found%%:*} }
_files() { print -- certs }
compadd() { shift; print -l -- "$@" }
${await scriptOf('zsh')}
words=("$@") CURRENT=$#
_estuary`;
  const typed = words.at(-1) ?? '';
  const offered = lines(await run('zsh', ['-fc', script, 'zsh', 'estuary', ...words]));
  return offered.filter((one) => one.startsWith(typed));
};

const fish: Completer = async (...words) => {
  const script = `${await scriptOf('fish')}\ncd /etc/ssl\ncomplete -C "estuary $argv"`;
  const offered = lines(await run('fish', ['--no-config', '-c', script, words.join(' ')]));
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
    expect(await offered('')).toEqual(expect.arrayContaining(['serve', 'audit', 'admin', 'client', 'completion']));
    expect(await offered('adm')).toEqual(['admin']);
    expect(await offered('admin', 'ot')).toEqual(['otp']);
    const otp = await offered('admin', 'otp', '');
    expect(otp.toSorted()).toEqual(['bulk', 'create', 'extend', 'list', 'revoke', 'show']);
    expect(await offered('admin', '--url', 'otp', 'otp', 'sh')).toEqual(['show']);
  });

  test('options of a command, its words, files', async () => {
    expect(await offered('admin', 'otp', 'list', '--sta')).toEqual(['--status']);
    expect(await offered('backup', '--t')).toEqual(['--to']);
    expect((await offered('admin', 'otp', 'list', '--status', '')).toSorted()).toEqual([
      'active',
      'consumed',
      'expired',
      'revoked',
    ]);
    expect(await offered('admin', 'cert', 'revoke', '00', '--reason', 'keyC')).toEqual(['keyCompromise']);
    expect(await offered('completion', 'f')).toEqual(['fish']);
    expect(await offered('check', '--config', 'cert')).toContain('certs');
    expect(await offered('admin', 'otp', 'list', '--client-id', '')).toEqual([]);
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
