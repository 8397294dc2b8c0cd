/** What differs between operating systems, as far as it can run here: Linux, and the parts for other Unix systems. */
import { fork } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { LINUX, POSIX, WINDOWS } from '../../src/client/system.ts';
import { runText } from '../support/command.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe.each([
  ['Linux', LINUX],
  ['POSIX', POSIX],
])('%s', (_name, system) => {
  test('one process locks a folder', async () => {
    const lock = await system.lockFolder(folder.path);
    await expect(system.lockFolder(folder.path)).rejects.toThrow('another estuary client uses this folder');
    lock.release();
    (await system.lockFolder(folder.path)).release();
  });

  test('users and groups have numbers', () => {
    expect([system.userId('root'), system.groupId('root')]).toEqual([0, 0]);
    expect(() => system.userId('nobody-there')).toThrow('"nobody-there" does not exist in /etc/passwd');
  });

  test('a path is one word of a command line', async () => {
    const path = "/a 'b' $(c) `d`";
    expect(await runText('/bin/sh', ['-c', `printf %s ${system.quote(path)}`])).toBe(path);
  });
});

test('POSIX: the lock of a killed process is free', async () => {
  const script = folder.file('lock.ts');
  const source = join(import.meta.dirname, '../../src/client/system.ts');
  writeFileSync(
    script,
    `import { POSIX } from ${JSON.stringify(source)};
await POSIX.lockFolder(${JSON.stringify(folder.path)});
process.send('locked');
setInterval(() => undefined, 1000);`,
  );
  const child = fork(script);
  await new Promise((resolve) => child.once('message', resolve));
  await expect(POSIX.lockFolder(folder.path)).rejects.toThrow('another estuary client');
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
  expect(existsSync(join(folder.path, '.lock-step'))).toBe(true);
  (await POSIX.lockFolder(folder.path)).release();
});

test('Windows: an owner is a configuration error, not a crash', () => {
  expect(() => WINDOWS.userId('web')).toThrow('have no effect on Windows');
});
