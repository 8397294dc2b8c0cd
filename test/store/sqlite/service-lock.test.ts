/** One service per store; contract §11. What a second start of the whole server does stands in test/faults/second-start.test.ts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { lockStore, shareStoreLock } from '../../../src/store/sqlite/service-lock.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { NODE } from '../../support/server-process.ts';

const folder = temporaryFolder();
const children: ChildProcess[] = [];
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));
afterAll(() => folder.remove());
let count = 0;
const freshStore = (): string => folder.file(`${++count}/est.db`);

/** Another process that takes the lock and keeps it. */
async function holder(store: string, as: 'lockStore' | 'shareStoreLock' = 'lockStore'): Promise<ChildProcess> {
  const module = new URL('../../../src/store/sqlite/service-lock.ts', import.meta.url).href;
  const code = `const m = await import(${JSON.stringify(module)}); await m.${as}(${JSON.stringify(store)});
    console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(NODE, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const first = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  expect(String(first[0])).toBe('held\n');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

describe('issue 11.15: one service per store', () => {
  test('a second one is refused with the host and pid of the first, whatever name it has for the store', async () => {
    const store = freshStore();
    const { pid } = await holder(store);
    const refusal = { code: 'STORE_IN_USE', detail: `host ${hostname()}, pid ${pid} has ${store}` };
    await expect(lockStore(store)).rejects.toMatchObject(refusal);
    symlinkSync(store, folder.file('link.db'));
    writeFileSync(store, '');
    await expect(lockStore(folder.file('link.db'))).rejects.toMatchObject(refusal);
  });

  test('the lock dies with its holder, and files that are left behind lock nobody out', async () => {
    const store = freshStore();
    await kill(await holder(store));
    expect(readdirSync(join(store, '..')).sort()).toEqual(['est.db.lock', 'est.db.owner']);
    const lock = await lockStore(store);
    expect(readFileSync(`${store}.owner`, 'utf8')).toContain(`pid ${process.pid}`);
    lock.release();
    expect(readdirSync(join(store, '..'))).toEqual(['est.db.lock']);
    await holder(store);
  });

  test('the workers of a service share it; a start waits until those of a killed supervisor are gone', async () => {
    const store = freshStore();
    const first = await holder(store);
    const worker = await holder(store, 'shareStoreLock');
    await kill(first);
    const next = lockStore(store);
    const early = await Promise.race([next.then(() => 'taken'), sleep(200, 'waiting')]);
    expect(early).toBe('waiting');
    await kill(worker);
    (await next).release();
  });

  test('of many starts at once exactly one has the store', async () => {
    const store = freshStore();
    const starts = await Promise.allSettled(Array.from({ length: 8 }, () => lockStore(store)));
    const held = starts.filter(({ status }) => status === 'fulfilled');
    expect(held).toHaveLength(1);
    for (const start of starts) {
      if (start.status === 'fulfilled') start.value.release();
      else expect(start.reason).toMatchObject({ code: 'STORE_IN_USE' });
    }
  });

  test('a lock file that is none is refused, not taken for a free lock', async () => {
    const store = freshStore();
    (await lockStore(store)).release();
    writeFileSync(`${store}.lock`, 'no database '.repeat(500));
    await expect(lockStore(store)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(() => shareStoreLock(store)).toThrow('the lock of the store cannot be used');
  });
});
