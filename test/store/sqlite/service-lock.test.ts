/** One service per store. test/faults/second-start.test.ts starts a second server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { lockStore } from '../../../src/store/sqlite/service-lock.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { NODE } from '../../support/server-process.ts';

const folder = temporaryFolder();
const children: ChildProcess[] = [];
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));
afterAll(() => folder.remove());
let count = 0;
const freshStore = (): string => folder.file(`${++count}/est.db`);

/** Another process that takes the lock and keeps it, with a reference, because a collected lock is released. undefined: it was refused. */
async function starts(store: string): Promise<ChildProcess | undefined> {
  const module = new URL('../../../src/store/sqlite/service-lock.ts', import.meta.url).href;
  const code = `const m = await import(${JSON.stringify(module)}); globalThis.lock = m.lockStore(${JSON.stringify(store)});
    console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(NODE, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  const first = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  return String(first[0]) === 'held\n' ? child : undefined;
}

async function holder(store: string): Promise<ChildProcess> {
  const child = await starts(store);
  if (child === undefined) throw new Error('the lock was refused');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

describe('one service per store', () => {
  test('a second one is refused with the host and pid of the first, under any path of the store', async () => {
    const store = freshStore();
    const { pid } = await holder(store);
    const refusal = { code: 'STORE_IN_USE', detail: `host ${hostname()}, pid ${pid} has ${store}` };
    expect(() => lockStore(store)).toThrow(expect.objectContaining(refusal));
    symlinkSync(store, folder.file('link.db'));
    writeFileSync(store, '');
    expect(() => lockStore(folder.file('link.db'))).toThrow(expect.objectContaining(refusal));
  });

  test('the lock ends with its holder, and files that are left behind keep no one out', async () => {
    const store = freshStore();
    await kill(await holder(store));
    expect(readdirSync(join(store, '..')).sort()).toEqual(['est.db.lock', 'est.db.owner']);
    const lock = lockStore(store);
    expect(readFileSync(`${store}.owner`, 'utf8')).toContain(`pid ${process.pid}`);
    lock.release();
    expect(readdirSync(join(store, '..'))).toEqual(['est.db.lock']);
    await holder(store);
  });

  test('of concurrent starts exactly one has the store', async () => {
    const store = freshStore();
    const started = await Promise.all(Array.from({ length: 4 }, () => starts(store)));
    expect(started.filter((child) => child !== undefined)).toHaveLength(1);
  });

  test('an invalid lock file is rejected, not taken for a free lock', () => {
    const store = freshStore();
    lockStore(store).release();
    writeFileSync(`${store}.lock`, 'no database '.repeat(500));
    expect(() => lockStore(store)).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE' }));
  });
});
