/** Signals that come while the server starts. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { olderRuntime, type Runtime } from '../support/older-node.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { NODE, SERVER, untilListening, untilLogged } from '../support/server-process.ts';

// Each starts a server, some of them twice over.

const folder = temporaryFolder();
const config = folder.file('est.toml');
const kept = folder.file('kept.toml');
const children: ChildProcess[] = [];

beforeAll(async () => {
  await makeQuickstart(folder.path);
  renameSync(config, kept);
});
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));
afterAll(() => folder.remove());

/** A server in the middle of its start: it waits for the configuration until `go` writes it. */
async function starting({ command, args }: Runtime): Promise<{ child: ChildProcess; go: () => Promise<void> }> {
  const pipe = folder.file('pipe');
  rmSync(pipe, { force: true });
  rmSync(config, { force: true });
  execFileSync('mkfifo', [pipe]);
  symlinkSync(pipe, config);
  const child = spawn(command, [...args, SERVER, '--config', config], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  // Opens when the server reads.
  const writing = await open(pipe, 'w');
  return {
    child,
    async go() {
      rmSync(config);
      writeFileSync(config, readFileSync(kept));
      await writing.writeFile(readFileSync(kept));
      await writing.close();
    },
  };
}

describe.each([
  ['the server', () => Promise.resolve({ command: NODE, args: [] })],
  ['a launcher on an older Node', () => olderRuntime(folder.path)],
])('a signal to %s during the start', (_, runtime) => {
  test('SIGHUP does not end it: the server reloads once it is up', async () => {
    const { child, go } = await starting(await runtime());
    child.kill('SIGHUP');
    child.kill('SIGHUP');
    await go();
    const server = await untilListening(child, ['est', 'admin'], 60_000);
    const reloads = () => server.log().filter(({ msg }) => msg === 'configuration reloaded').length;
    await expect.poll(reloads).toBe(1);
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops it with exit code 0', async (signal) => {
    const { child, go } = await starting(await runtime());
    const exit = once(child, 'exit');
    child.kill(signal);
    await go();
    expect(await exit).toEqual([0, null]);
  });
});

test.each([
  ['the server', () => Promise.resolve({ command: NODE, args: [] })],
  ['a launcher on an older Node', () => olderRuntime(folder.path)],
])('SIGUSR1 to %s opens no debugger: it is logged and does nothing, like SIGUSR2', async (_, runtime) => {
  const { child, go } = await starting(await runtime());
  child.kill('SIGUSR1');
  await go();
  const server = await untilListening(child, ['est', 'admin'], 60_000);
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) {
    child.kill(signal);
    await untilLogged(server, { msg: `${signal} has no effect; SIGHUP reloads the configuration` });
  }
  expect(server.output()).not.toContain('Debugger');
  const listening = server.log().filter(({ msg }) => msg === 'listening');
  const threads = readdirSync(`/proc/${server.pid}/task`).map((id) =>
    readFileSync(`/proc/${server.pid}/task/${id}/comm`, 'utf8').trim(),
  );
  expect(listening).toHaveLength(2);
  expect(threads).not.toContain('node:inspector');
  expect(await server.stop()).toEqual({ code: 0, signal: null });
});

describe('a signal before the first import of the program', () => {
  function signalledEarly(signal: NodeJS.Signals): ChildProcess {
    writeFileSync(config, readFileSync(kept));
    const hook = folder.file('early.mjs');
    writeFileSync(
      hook,
      `import { registerHooks } from 'node:module';
       let sent = false;
       registerHooks({ resolve(specifier, context, next) {
         if (!sent && context.parentURL?.endsWith('/dist/server.js')) { sent = true; process.kill(process.pid, '${signal}'); }
         return next(specifier, context);
       } });`,
    );
    const args = ['--import', hook, SERVER, '--config', config];
    const child = spawn(NODE, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    return child;
  }

  test('SIGHUP does not end it: the server reloads once it is up', async () => {
    const server = await untilListening(signalledEarly('SIGHUP'), ['est', 'admin'], 60_000);
    const reloads = () => server.log().filter(({ msg }) => msg === 'configuration reloaded').length;
    await expect.poll(reloads).toBe(1);
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops it with exit code 0', async (signal) => {
    expect(await once(signalledEarly(signal), 'exit')).toEqual([0, null]);
  });
});

describe('a signal to the whole process group during the hand-over from an older Node', () => {
  /** The process that runs the pinned Node, and may not have reached its first statement. */
  async function launched(signal: NodeJS.Signals): Promise<ChildProcess> {
    writeFileSync(config, readFileSync(kept));
    const { command, args } = await olderRuntime(folder.path);
    const child = spawn(command, [...args, SERVER, '--config', config], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    children.push(child);
    const { pid } = child;
    if (pid === undefined) throw new Error('the launcher could not be started');
    const hasChild = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    while (hasChild() === '') await nextTurn();
    process.kill(-pid, signal);
    return child;
  }

  test('SIGHUP does not end it', async () => {
    const server = await untilListening(await launched('SIGHUP'), ['est', 'admin'], 60_000);
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops it with exit code 0', async (signal) => {
    expect(await once(await launched(signal), 'exit')).toEqual([0, null]);
  });
});
