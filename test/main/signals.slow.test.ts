/** Contract §1: signals that come while the server starts. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { olderRuntime, type Runtime } from '../support/older-node.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { NODE, SERVER, untilListening } from '../support/server-process.ts';

// Each starts a server, some of them twice over.
vi.setConfig({ testTimeout: 120_000 });

const folder = temporaryFolder();
const config = folder.file('est.toml');
const kept = folder.file('kept.toml');
const children: ChildProcess[] = [];

beforeAll(async () => {
  await makeQuickstart(folder.path);
  renameSync(config, kept);
}, 120_000);
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));
afterAll(() => folder.remove());

/** A server that stands in the middle of its start: it waits for the configuration, which `go` gives it. */
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
])('issue 11.17: a signal to %s during the start', (_, runtime) => {
  test('SIGHUP ends nothing: it reloads once the server is up', async () => {
    const { child, go } = await starting(await runtime());
    child.kill('SIGHUP');
    child.kill('SIGHUP');
    await go();
    const server = await untilListening(child, ['est', 'admin'], 60_000);
    const reloads = () => server.log().filter(({ msg }) => msg === 'configuration reloaded').length;
    await expect.poll(reloads, { timeout: 30_000 }).toBe(1);
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops it with exit code 0', async (signal) => {
    const { child, go } = await starting(await runtime());
    child.kill(signal);
    await go();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});
