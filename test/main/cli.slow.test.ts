import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run, runAny, type CommandResult } from '../support/command.ts';
import { olderRuntime, type Runtime } from '../support/older-node.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { QUICKSTART } from '../support/quickstart.ts';
import { ROOT } from '../support/root.ts';
import { NODE, SERVER, startServer } from '../support/server-process.ts';

const folder = temporaryFolder();
const config = folder.file('est.toml');

beforeAll(async () => {
  await run(QUICKSTART, ['--no-start', '--dir', folder.path, '--est-port', '0', '--admin-port', '0'], {
    timeout: 110_000,
  });
});
afterAll(() => folder.remove());

const estuary = (...args: string[]): Promise<CommandResult> => runAny(NODE, [SERVER, ...args]);

async function versionOfPackage(): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  expect(manifest).toHaveProperty('version');
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : '';
}

describe('the command', () => {
  test('--version prints the version of the package', async () => {
    const { code, stdout } = await estuary('--version');
    expect(code).toBe(0);
    expect(stdout.toString()).toBe(`estuary ${await versionOfPackage()}\n`);
  });

  test('--help names every flag and exit code', async () => {
    const { code, output } = await estuary('--help');
    expect(code).toBe(0);
    for (const word of ['--config', '--check', '--version', '--help', 'audit verify', 'exit codes', 'SIGHUP'])
      expect(output).toContain(word);
  });

  test.each([
    [[], '--config FILE is missing'],
    [['--config'], '--config'],
    [['--conf', 'x'], '--conf'],
    [['serv', '--config', 'est.toml'], 'there is no command "serv" (the nearest known one is "serve")'],
    [['audit', '--config', 'est.toml'], 'there is no command "audit"'],
    [['audit', 'verify', '--check', '--config', 'est.toml'], '"audit verify" has no option --check'],
  ])('%j is refused with a sentence and exit code 1', async (args, sentence) => {
    const { code, stdout, output } = await estuary(...args);
    expect(code).toBe(1);
    expect(stdout.toString()).toBe('');
    expect(output).toMatch(/^estuary: /);
    expect(output).toContain(sentence);
  });

  test.each([
    [['--config', config, '--check']],
    [['serve', '--config', config, '--check']],
    [['check', '--config', config]],
  ])('%j accepts what the quickstart writes, with exit code 0, and starts nothing', async (args) => {
    const { code, stdout } = await estuary(...args);
    expect(stdout.toString()).toBe(`${config}: the configuration is valid\n`);
    expect(code).toBe(0);
  });

  test('`estuary serve` is the server', async () => {
    const child = spawn(NODE, [SERVER, 'serve', '--config', config], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await expect.poll(() => output).toContain('"listener":"admin"');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  test.each([['--check'], []])(
    'a refused configuration prints every problem to stderr, exit code 2 (%s)',
    async (...flags) => {
      const bad = folder.file('bad.toml');
      await writeFile(bad, `${await readFile(config, 'utf8')}\n[lgo]\nlevel = "info"\n[log]\nlevel = "loud"\n`);
      const { code, stdout, output } = await estuary('--config', bad, ...flags);
      expect(code).toBe(2);
      expect(stdout.toString()).toBe('');
      expect(output.split('\n')).toEqual([
        `${bad}: lgo: unknown key (the nearest known one is "log")`,
        `${bad}: log.level: "loud" is not known ("fatal", "error", "warn", "info", "debug", "trace", "silent")`,
        '',
      ]);
    },
  );

  test('a configuration file that is not there: exit code 2', async () => {
    const { code, output } = await estuary('--config', folder.file('absent.toml'));
    expect(code).toBe(2);
    expect(output).toContain('absent.toml: cannot be read: there is no such file');
  });

  test.each(['est', 'admin'] as const)(
    'the port of the %s listener is taken: exit code 1, the port is named, and nothing was served or recorded',
    async (name) => {
      const server = await startServer({ config });
      try {
        const taken = folder.file('taken.toml');
        const port = server.port(name);
        const text = (await readFile(config, 'utf8')).replace(
          new RegExp(`(\\[${name}\\](?:\\n[^[]*?)?\\nport = )0$`, 'm'),
          `$1${port}`,
        );
        await writeFile(taken, text.replaceAll('data/', `data-${name}/`));
        const { code, output } = await estuary('--config', taken);
        expect(output).toMatch(new RegExp(`the ${name} listener cannot listen on .*, port ${port} \\(.*EADDRINUSE`));
        expect(output).not.toContain('"listening"');
        expect(code).toBe(1);
        expect(await readFile(folder.file(`data-${name}/audit.log`), 'utf8')).toBe('');
      } finally {
        await server.stop();
      }
    },
  );
});

test.skipIf(!existsSync('/dev/full'))('output that cannot be written is a sentence and exit code 1', async () => {
  const child = await runAny('sh', ['-c', '"$@" > /dev/full', 'sh', NODE, SERVER, '--help']);
  expect(child).toMatchObject({
    code: 1,
    output: 'estuary: the output is incomplete: cannot write: no space left on device\n',
  });
});

test('errors that nobody reads do not change the exit code', async () => {
  const { code } = await runAny('sh', [
    '-c',
    '"$@" 2> /dev/full',
    'sh',
    NODE,
    SERVER,
    '--check',
    '--config',
    'absent.toml',
  ]);
  expect(code).toBe(2);
});

describe('audit verify', () => {
  test('a whole log: exit code 0; a changed record: exit code 1 and its number', async () => {
    await (await startServer({ config })).stop();
    const whole = await estuary('audit', 'verify', '--config', config);
    expect(whole.stdout.toString()).toMatch(/^the audit log is intact: \d+ records\n$/);
    expect(whole.code).toBe(0);

    const broken = temporaryFolder();
    try {
      await cp(folder.path, broken.path, { recursive: true });
      const log = await readFile(broken.file('data/audit.log'), 'utf8');
      await writeFile(broken.file('data/audit.log'), log.replace('"service.start"', '"service.stop"'));
      const { code, output } = await estuary('audit', 'verify', '--config', broken.file('est.toml'));
      expect(output).toMatch(/^audit record 1 is broken: /m);
      expect(code).toBe(1);
    } finally {
      broken.remove();
    }
  });
});

describe('signals', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops the server with exit code 0', async (name) => {
    const server = await startServer({ config });
    server.signal(name);
    expect(await server.exited).toEqual({ code: 0, signal: null });
  });
});

describe('stack: on an older Node the command hands over to the pinned runtime', () => {
  let older: Runtime;
  beforeAll(async () => {
    older = await olderRuntime(folder.path);
  });

  test('same arguments, output and exit code', async () => {
    const ok = await runAny(older.command, [...older.args, SERVER, '--version']);
    expect(ok.output).toBe(`estuary ${await versionOfPackage()}\n`);
    expect(ok.code).toBe(0);
    const refused = await runAny(older.command, [
      ...older.args,
      SERVER,
      '--config',
      folder.file('a b.toml'),
      '--check',
    ]);
    expect(refused.output).toContain('a b.toml: cannot be read');
    expect(refused.code).toBe(2);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops the server with exit code 0', async (name) => {
    const { child, port } = await launch();
    expect(await answers(port)).toBe(true);
    child.kill(name);
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await answers(port)).toBe(false);
  });

  test('SIGKILL of the launcher ends the server too, so that its ports are free for the next', async () => {
    const { child, port, closed } = await launch();
    child.kill('SIGKILL');
    await closed;
    expect(await answers(port)).toBe(false);
  });

  test('without the pinned runtime it says what is missing, exit code 1', async () => {
    const lonely = temporaryFolder();
    try {
      await mkdir(lonely.file('dist'));
      await copyFile(SERVER, lonely.file('dist/server.js'));
      await writeFile(lonely.file('package.json'), '{"type":"module"}');
      const { code, output } = await runAny(older.command, [...older.args, lonely.file('dist/server.js'), '--version']);
      expect(output).toMatch(/^estuary needs Node\.js 26 or newer; this is \d+\..*npm ci.*\n$/);
      expect(code).toBe(1);
    } finally {
      lonely.remove();
    }
  });

  /** A server under the older Node. `closed`: everybody who could write to its output is gone. */
  async function launch() {
    const child = spawn(older.command, [...older.args, SERVER, '--config', config], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(child, 'close');
    let output = '';
    const port = await new Promise<number>((resolve, reject) => {
      void closed.then(() => reject(new Error(`ended early:\n${output}`)));
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const est = /"listener":"est","address":"[^"]*","port":(\d+)/.exec(output)?.[1];
        if (est !== undefined && output.includes('"listener":"admin"')) resolve(Number(est));
      });
    });
    return { child, port, closed };
  }
});

/** Whether somebody listens on the port. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
