/** A program whose help is generated from its command table. */
import { describe, expect, test } from 'vitest';
import {
  argument,
  command,
  EXIT,
  flag,
  group,
  required,
  UsageError,
  value,
  values,
  type CommandContext,
  type Entry,
} from '../../../src/main/commands/command.ts';
import { runCommand } from '../../../src/main/commands/run-command.ts';
import { COMMANDS } from '../../../src/main/commands/table.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { textOf } from '../../support/command.ts';

/** What was run, with which values. */
const ran: unknown[] = [];
const keep = (name: string) => () =>
  Promise.resolve((values: object) => {
    ran.push([name, values]);
    return Promise.resolve(0);
  });
const fail = (error: Error) => () => Promise.resolve(() => Promise.reject(error));

const config = required('FILE', 'the configuration');
const TABLE: readonly Entry[] = [
  command('serve', 'Serve.', { options: { config, check: flag('check') }, load: keep('serve'), takesSignals: true }),
  command('audit verify', 'Verify.', { options: { config }, load: keep('audit verify') }),
  command('audit export', 'Export.', {
    options: { config, since: value('DATE', 'from when') },
    load: keep('audit export'),
  }),
  command('show', 'Show one.', { options: { id: argument('which'), json: flag('as JSON') }, load: keep('show') }),
  command('tag', 'Tag.', { options: { tag: values('TEXT', 'a tag') }, load: keep('tag') }),
  command('misused', 'Refuse.', { options: {}, load: fail(new UsageError('not so')), misuse: EXIT.refused }),
  command('refused', 'Refuse.', {
    options: {},
    load: fail(new ConfigError('est.toml', [{ key: 'x', message: 'is wrong' }])),
  }),
  command('failing', 'Fail.', { options: {}, load: fail(new Error('no luck')) }),
  group('admin', 'The admin API.', () =>
    Promise.resolve([
      command('otp create', 'Make one.', { options: { url: required('URL', 'where') }, load: keep('otp create') }),
    ]),
  ),
];

async function run(...args: string[]) {
  let out = '';
  let err = '';
  let released = 0;
  ran.length = 0;
  const context: CommandContext = {
    env: {},
    out: (text) => (out += textOf(text)),
    err: (text) => (err += text),
    now: () => 0,
    signals: { pass: () => undefined, release: () => released++ },
  };
  const program = { name: 'estuary', commands: TABLE, unnamed: 'serve', version: () => Promise.resolve('estuary 1') };
  const code = await runCommand(program, args, context);
  return { code, out, err, released, ran: [...ran] };
}

describe('which command', () => {
  test.each<[string[], unknown]>([
    [
      ['serve', '--config', 'F'],
      ['serve', { config: 'F', check: false }],
    ],
    [
      ['--config', 'F', '--check'],
      ['serve', { config: 'F', check: true }],
    ],
    [
      ['--config=audit', 'serve'],
      ['serve', { config: 'audit', check: false }],
    ],
    [
      ['audit', 'verify', '--config', 'F'],
      ['audit verify', { config: 'F' }],
    ],
    [
      ['--config', 'F', 'audit', 'verify'],
      ['audit verify', { config: 'F' }],
    ],
    [
      ['audit', 'export', '--config', 'F', '--since', '2026'],
      ['audit export', { config: 'F', since: '2026' }],
    ],
    [
      ['show', '17', '--json'],
      ['show', { id: '17', json: true }],
    ],
    [
      ['tag', '--tag', 'a', '--tag=b'],
      ['tag', { tag: ['a', 'b'] }],
    ],
    [['tag'], ['tag', { tag: [] }]],
    [
      ['admin', 'otp', 'create', '--url', 'U'],
      ['otp create', { url: 'U' }],
    ],
    [
      ['admin', '--url', 'U', 'otp', 'create'],
      ['otp create', { url: 'U' }],
    ],
  ])('%j', async (args, expected) => {
    expect(await run(...args)).toMatchObject({ code: 0, ran: [expected], err: '' });
  });

  test('"help" in front is "--help" behind', async () => {
    expect((await run('help', 'audit', 'verify')).out).toBe((await run('audit', 'verify', '--help')).out);
    expect((await run('help')).out).toBe((await run('--help')).out);
  });

  test('only a command that takes the signals keeps them', async () => {
    expect((await run('serve', '--config', 'F')).released).toBe(0);
    for (const args of [['audit', 'verify', '--config', 'F'], ['--help'], ['nonsense'], ['show']])
      expect((await run(...args)).released, args.join(' ')).toBe(1);
  });
});

describe('a wrong command line is a sentence and an exit code', () => {
  test.each<[string[], string]>([
    [[], '--config FILE is missing'],
    [['serve', '--config', ''], '--config FILE is missing'],
    [['version'], 'there is no command "version" (the nearest known one is "--version")'],
    [['-v'], 'there is no option -v (the nearest known one is --version)'],
    [['--config', '--check'], '--config needs a value (if the value begins with a dash: --config=VALUE)'],
    [['serv'], 'there is no command "serv" (the nearest known one is "serve")'],
    [['audit'], 'there is no command "audit" (audit verify, audit export)'],
    [['audit', 'verfy'], 'there is no command "audit verfy" (the nearest known one is "audit verify")'],
    [['audit', 'verify', 'now', '--config', 'F'], '"audit verify" does not accept the argument "now"'],
    [['audit', 'verify', '--check', '--config', 'F'], '"audit verify" has no option --check'],
    [['audit', 'verify', '--confg', 'F'], 'there is no option --confg (the nearest known one is --config)'],
    [['--confg', 'F'], 'there is no option --confg (the nearest known one is --config)'],
    [['serve', '--config'], '--config needs a value'],
    [['audit', 'show', 'F'], 'there is no command "audit show F" (audit verify, audit export)'],
    [['show'], 'ID is missing'],
    [['show', '--id', 'x'], '"show" has no option --id: write "show ID"'],
    [['show', 'device-\ufffd'], 'an argument is not UTF-8 text'],
    [['otp', 'create'], 'there is no command "otp create" (did you mean "estuary admin otp create"?)'],
    [['admin', 'opt', 'create'], 'there is no command "opt create" (the nearest known one is "otp create")'],
  ])('%j', async (args, sentence) => {
    const done = await run(...args);
    expect(done).toMatchObject({ code: 1, out: '', ran: [] });
    expect(done.err).toMatch(/^estuary: /);
    expect(done.err).toContain(sentence);
    expect(done.err).toContain(' --help shows the usage.\n');
  });

  test('what a command finds wrong of it has its own exit code', async () => {
    expect(await run('misused')).toMatchObject({
      code: 2,
      err: 'estuary: not so\nestuary misused --help shows the usage.\n',
    });
  });

  test('a configuration that is refused is 2, any other failure 1 with its text', async () => {
    expect(await run('refused')).toMatchObject({ code: 2, err: 'est.toml: x: is wrong\n' });
    expect(await run('failing')).toMatchObject({ code: 1, err: 'estuary failing: no luck\n' });
  });
});

describe('help', () => {
  test.each([['--help'], ['-h'], ['--help', '--config', 'F']])('of all (%s)', async (...args) => {
    const { code, out } = await run(...args);
    expect(code).toBe(0);
    for (const { name, summary } of TABLE) expect(out).toMatch(new RegExp(`^ {2}${name} +${summary}$`, 'm'));
  });

  test('of one: its options, with what has to be given', async () => {
    const { code, out, ran: nothing } = await run('audit', 'export', '--help');
    expect(code).toBe(0);
    expect(nothing).toEqual([]);
    expect(out).toBe(
      'usage: estuary audit export --config FILE [options]\n\nExport.\n\n' +
        '  --config FILE  the configuration\n  --since DATE   from when\n  --help         show this text\n',
    );
    expect((await run('show', '--help')).out).toContain('usage: estuary show ID [options]');
  });

  test('of a group', async () => {
    expect((await run('admin', '--help')).out).toContain('usage: estuary admin COMMAND');
    expect((await run('admin', '--help')).out).toContain('otp create');
    expect((await run('admin', 'otp', 'create', '--help')).out).toContain('usage: estuary admin otp create --url URL');
  });

  test('--version', async () => {
    expect(await run('--version')).toMatchObject({ code: 0, out: 'estuary 1\n' });
  });
});

describe('the table', () => {
  test('has the documented commands, each once', () => {
    const names = COMMANDS.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['serve', 'check', 'audit verify', 'ca init']));
    expect(new Set(names).size).toBe(names.length);
  });

  test('an option takes a value in every command or in none: which words are the command is told before which it is', () => {
    const kinds = new Map<string, string>();
    for (const entry of COMMANDS)
      for (const [name, { kind }] of Object.entries(entry.kind === 'command' ? entry.options : {})) {
        expect(kinds.get(name) ?? kind, name).toBe(kind);
        kinds.set(name, kind);
      }
  });
});
