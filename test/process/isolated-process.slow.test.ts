import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { IsolatedProcess } from '../../src/process/isolated-process.ts';
import type { IsolatedProcessOptions } from '../../src/process/isolated-process.ts';
import { pause, until } from '../support/until.ts';
import { pidOf } from '../support/spawned.ts';
import { removeFolder } from '../support/folders.ts';

const deadline = { deadlineMs: 20_000 };
const started: IsolatedProcess[] = [];
const events: string[] = [];
const note =
  (level: string) =>
  (fields: object, message: string): void =>
    void events.push(`${level} ${message} ${JSON.stringify(fields)}`);

function example(options: Partial<IsolatedProcessOptions> = {}): IsolatedProcess {
  const child = new IsolatedProcess({
    module: new URL('./example-child.ts', import.meta.url),
    code: 'PKCS11',
    subject: 'the example',
    env: { ONLY_THIS: '1' },
    init: 'hello',
    startTimeoutMs: 20_000,
    concurrency: 8,
    queueLimit: 8,
    retryAfter: 7,
    log: { info: note('info'), warn: note('warn'), error: note('error') },
    minBackoffMs: 10,
    maxBackoffMs: 50,
    ...options,
  });
  started.push(child);
  return child;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((child) => child.stop()));
  events.length = 0;
});

const lost = { status: 500, code: 'PKCS11_FAILED', message: 'the example failed' };
const down = { status: 503, code: 'PKCS11_DOWN', retryAfter: 7, message: 'the example is temporarily unavailable' };

describe('calls', () => {
  test('are correlated by id: a slow one does not hold up a quick one', async () => {
    const child = example();
    await child.start();
    const slow = child.call('later', 300, deadline);
    const order: unknown[] = [];
    await Promise.all([
      slow.then((value) => order.push(value)),
      child.call('greet', 'world', deadline).then((value) => order.push(value)),
    ]);
    expect(order).toEqual(['hello world', 300]);
  });

  test('carry bytes', async () => {
    const child = example();
    await child.start();
    const bytes = Buffer.from([0, 255, 1]);
    expect(Buffer.from((await child.call('bytes', bytes, deadline)) as Uint8Array)).toEqual(bytes);
  });

  test('rethrow what the method reported, and the process stays up', async () => {
    const child = example();
    await child.start();
    const { pid } = child;
    await expect(child.call('refuse', undefined, deadline)).rejects.toMatchObject({
      name: 'IsolatedError',
      code: 'TOO_HOT',
      message: 'try a cooler one',
    });
    await expect(child.call('toString', undefined, deadline)).rejects.toMatchObject({ code: 'NO_SUCH_METHOD' });
    expect(await child.call('pid', undefined, deadline)).toBe(pid);
  });

  test('beyond concurrency and queue are refused with 503', async () => {
    const child = example({ concurrency: 1, queueLimit: 1 });
    await child.start();
    const first = child.call('later', 200, deadline);
    const second = child.call('greet', 'two', deadline);
    await expect(child.call('greet', 'three', deadline)).rejects.toMatchObject({
      status: 503,
      code: 'PKCS11_BUSY',
      retryAfter: 7,
    });
    expect(await Promise.all([first, second])).toEqual([200, 'hello two']);
  });

  test('waiting too long for a turn are refused with 503, and the process lives on', async () => {
    const child = example({ concurrency: 1 });
    await child.start();
    const { pid } = child;
    const first = child.call('later', 500, deadline);
    await expect(child.call('greet', 'two', { deadlineMs: 50 })).rejects.toMatchObject({ code: 'PKCS11_BUSY' });
    expect(await first).toBe(500);
    expect(child.pid).toBe(pid);
  });

  test('the child sees neither our environment nor our command line', async () => {
    const child = example();
    await child.start();
    const seen = (await child.call('environment', undefined, deadline)) as Record<string, unknown>;
    expect(seen['names']).toEqual(expect.arrayContaining(['ONLY_THIS']));
    expect(seen['names']).not.toEqual(expect.arrayContaining(['PATH']));
    expect(seen).toMatchObject({ argv: [], execArgv: ['--disable-sigusr1'] });
  });
});

describe('a child that fails', () => {
  test('by hanging is killed at the deadline: its calls get 500, callers meanwhile 503, then it is up again', async () => {
    const child = example({ minBackoffMs: 300 });
    await child.start();
    const pid = pidOf(child);
    const bystander = child.call('later', 60_000, deadline);
    const hung = child.call('hang', undefined, { deadlineMs: 200 });
    await expect(hung).rejects.toMatchObject({ status: 500, code: 'PKCS11_TIMEOUT' });
    await expect(bystander).rejects.toMatchObject({ status: 500, code: 'PKCS11_TIMEOUT' });
    await expect(child.call('greet', 'x', deadline)).rejects.toMatchObject(down);
    await until('restart', () => child.state === 'up');
    expect(await child.call('greet', 'again', deadline)).toBe('hello again');
    expect(child.pid).not.toBe(pid);
    await until('the hung process is gone', () => !isAlive(pid));
  });

  test('stopped by SIGSTOP counts as hanging', async () => {
    const child = example();
    await child.start();
    process.kill(pidOf(child), 'SIGSTOP');
    await expect(child.call('greet', 'x', { deadlineMs: 200 })).rejects.toMatchObject({ code: 'PKCS11_TIMEOUT' });
    await until('restart', () => child.state === 'up');
    expect(await child.call('greet', 'again', deadline)).toBe('hello again');
  });

  test.each(['crash', 'complain', 'garbage'])('by %s costs the calls in flight and is started again', async (how) => {
    const child = example();
    await child.start();
    const bystander = child.call('later', 60_000, deadline);
    await expect(child.call(how, undefined, deadline)).rejects.toMatchObject(lost);
    await expect(bystander).rejects.toMatchObject(lost);
    await until('restart', () => child.state === 'up');
    expect(await child.call('greet', 'again', deadline)).toBe('hello again');
    if (how === 'complain') expect(events.join('\n')).toContain('the library says ouch');
  });

  test('sends away the calls that were waiting for a turn with 503', async () => {
    const child = example({ concurrency: 1 });
    await child.start();
    const inFlight = child.call('complain', undefined, deadline);
    const waiting = child.call('greet', 'x', deadline);
    await expect(inFlight).rejects.toMatchObject(lost);
    await expect(waiting).rejects.toMatchObject(down);
  });

  test('again and again is restarted again and again', async () => {
    const child = example();
    await child.start();
    for (let i = 0; i < 3; i += 1) {
      await expect(child.call('crash', undefined, deadline)).rejects.toMatchObject(lost);
      await until('restart', () => child.state === 'up');
    }
    expect(await child.call('greet', 'at last', deadline)).toBe('hello at last');
  });
});

describe('starting', () => {
  test.each([
    ['refuse', { name: 'IsolatedError', code: 'NO_KEY', message: 'the key is missing' }],
    ['crash', lost],
    ['hang', { code: 'PKCS11_TIMEOUT', status: 500 }],
  ])('fails when the first init does %s, and nothing is left running', async (init, error) => {
    const child = example({ init, startTimeoutMs: init === 'hang' ? 1500 : 20_000 });
    await expect(child.start()).rejects.toMatchObject(error);
    expect(child.state).toBe('stopped');
    expect(child.pid).toBeUndefined();
    await expect(child.call('greet', 'x', deadline)).rejects.toMatchObject(down);
  });

  test('again stays down after a permanent refusal: a wrong PIN is not tried in a loop', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'estuary-isolated-'));
    try {
      const child = example({ init: `once:${join(directory, 'been-here')}` });
      await child.start();
      void child.restart('test');
      await until('giving up', () => events.some((event) => event.includes('stays down')));
      await pause(200);
      expect(child.state).toBe('down');
      expect(child.pid).toBeUndefined();
      expect(child.reason).toBe('the PIN is wrong');
      await expect(child.call('greet', 'x', deadline)).rejects.toMatchObject(down);
    } finally {
      removeFolder(directory);
    }
  });
});

describe('the end', () => {
  test('stop() ends the process, hung or not', async () => {
    const child = example();
    await child.start();
    const pid = pidOf(child);
    const hung = expect(child.call('hang', undefined, deadline)).rejects.toMatchObject(lost);
    await pause(50);
    await child.stop();
    await hung;
    expect(isAlive(pid)).toBe(false);
    await expect(child.call('greet', 'x', deadline)).rejects.toMatchObject(down);
  });

  test.each(['idle', 'hang'])('a parent killed with -9 leaves no orphan (%s child)', async (mode) => {
    const parent = spawn(process.execPath, [fileURLToPath(new URL('./example-parent.ts', import.meta.url)), mode], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString().trim());
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await until('the child is gone', () => !isAlive(pid));
  });
});
