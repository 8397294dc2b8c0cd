import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { readContent, readContentSync } from '../../src/config/content.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

function pipe(name: string): string {
  const file = folder.file(name);
  spawnSync('mkfifo', [file]);
  return file;
}

test('a file is read whole', async () => {
  writeFileSync(folder.file('file'), 'x'.repeat(200_000));
  expect(await readContent(folder.file('file'))).toHaveLength(200_000);
});

test('a pipe is read to its end, also if the writer is slow', async () => {
  for (const read of [readContent, readContentSync]) {
    const file = pipe(read.name);
    spawn('sh', ['-c', 'exec >"$1"; sleep 0.1; printf a; sleep 0.1; printf b', 'sh', file]);
    expect((await read(file)).toString()).toBe('ab');
  }
});

test('a pipe that nobody writes to, or that does not end, is an error', async () => {
  await expect(readContent(pipe('unwritten'))).rejects.toThrow('it is a pipe that nobody writes to');
  const file = pipe('endless');
  const writer = spawn('sh', ['-c', 'exec >"$1"; printf a; exec sleep 60', 'sh', file]);
  await expect(readContent(file)).rejects.toThrow('or that does not end');
  writer.kill();
});

test('a program on its own waits longer, but not for ever', () => {
  let now = 0;
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => (now += 10_000));
  onTestFinished(() => clock.mockRestore());
  expect(() => readContentSync(pipe('ignored'))).toThrow('it is a pipe that nobody writes to');
  expect(now).toBeGreaterThanOrEqual(60_000);
});

test('a device has no content or too much', async () => {
  expect(await readContent('/dev/null')).toHaveLength(0);
  await expect(readContent('/dev/zero')).rejects.toThrow('more than 4194304 octets');
});

test.each([
  ['nothing', 'none', 'ENOENT'],
  ['a folder', '.', 'EISDIR'],
])('%s is the error of the system', async (_, name, code) => {
  await expect(readContent(folder.file(name))).rejects.toMatchObject({ code });
});
