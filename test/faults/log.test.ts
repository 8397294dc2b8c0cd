/** A log that cannot be written stops neither the service nor a stop. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { Agent } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { call } from '../support/https.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { freePorts } from '../support/ports.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { until } from '../support/until.ts';

const folder = temporaryFolder();
const children: ChildProcess[] = [];
const descriptors: number[] = [];
let [est, admin] = [0, 0];
let ca: Buffer;

beforeAll(async () => {
  await makeQuickstart(folder.path);
  ca = readFileSync(folder.file('ca/root.pem'));
  [est = 0, admin = 0] = await freePorts(2);
  const toml = readFileSync(folder.file('est.toml'), 'utf8');
  const ports = [est, admin];
  writeFileSync(
    folder.file('est.toml'),
    toml.replace(/^port = \d+/gm, (line) => (ports.length === 0 ? line : `port = ${ports.shift()}`)),
  );
});
afterEach(() => {
  children.splice(0).forEach((child) => child.kill('SIGKILL'));
  descriptors.splice(0).forEach((fd) => closeSync(fd));
});
afterAll(() => folder.remove());

const opened = (path: string, flags: number | string): number => {
  const fd = openSync(path, flags);
  descriptors.push(fd);
  return fd;
};

const ARGS = [SERVER, '--config', folder.file('est.toml')];

function start(stdout: number): ChildProcess {
  const child = spawn(NODE, ARGS, { stdio: ['ignore', stdout, 'ignore'] });
  children.push(child);
  return child;
}

const get = (port: number, path: string, agent?: Agent) =>
  call({ port, path, tls: { ca }, ...(agent === undefined ? {} : { agent }) });
const serves = (): Promise<true> =>
  until('the EST listener answers', () =>
    get(est, '/.well-known/est/cacerts').then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
const parts = async (): Promise<unknown> => {
  const { status, text } = await get(admin, '/readyz');
  expect(status).toBe(200);
  return (JSON.parse(text) as { parts: { log?: string } }).parts.log;
};
const untilDegraded = () => until('/readyz names the log', async () => (await parts()) === 'degraded');

function stops(child: ChildProcess): Promise<[number | null, string | null]> {
  const exited = new Promise<[number | null, string | null]>((resolve) =>
    child.once('exit', (code, signal) => resolve([code, signal])),
  );
  child.kill('SIGTERM');
  return exited;
}

/** A named pipe that a reader may leave and open again. */
function pipe(name: string): string {
  const path = folder.file(name);
  execFileSync('mkfifo', [path]);
  return path;
}

describe('a log that cannot be written', () => {
  test('on a full disk: the service answers, is ready, names the log, and stops', async () => {
    const child = start(opened('/dev/full', 'w'));
    await serves();
    await untilDegraded();
    await serves();
    expect(await stops(child)).toEqual([0, null]);
  });

  test('to a pipe that nobody reads: the service answers and stops, and goes on when somebody reads', async () => {
    const path = pipe('unread');
    // Keeps the pipe open; it never reads until the end.
    const reader = opened(path, constants.O_RDWR | constants.O_NONBLOCK);
    fill(reader);
    const child = start(opened(path, constants.O_WRONLY));
    await serves();
    await untilDegraded();
    let text = '';
    await until('the log goes on', () => (text += read(reader)).includes('"listener":"est"'));
    await until('/readyz no longer names the log', async () => (await parts()) === undefined);
    fill(reader);
    await serves();
    expect(await stops(child)).toEqual([0, null]);
  });

  test('to a reader that is gone and back: the log goes on and says how many lines are missing', async () => {
    const path = pipe('reader');
    const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const child = start(opened(path, constants.O_WRONLY));
    await serves();
    closeSync(first);
    // More than 1 MiB of lines.
    const url = `/${'x'.repeat(250)}`;
    const agent = new Agent({ keepAlive: true, maxSockets: 8, ca });
    const lost = async (): Promise<number> => {
      await Promise.all(Array.from({ length: 200 }, () => get(est, url, agent)));
      const token = readFileSync(folder.file('admin/token'), 'utf8').trim();
      const headers = { Authorization: `Bearer ${token}` };
      const { text } = await call({ port: admin, path: '/metrics', tls: { ca }, headers });
      return Number(/^estuary_log_lines_lost_total (\d+)/m.exec(text)?.[1]);
    };
    await until('lines are lost', async () => (await lost()) > 0);
    agent.destroy();
    await untilDegraded();
    const again = opened(path, constants.O_RDONLY | constants.O_NONBLOCK);
    let text = '';
    await until('the log says what is missing', () => /"lost":\d+/.test((text += read(again))));
    expect(text).toContain('log lines are missing here');
    expect(await stops(child)).toEqual([0, null]);
  });

  test('to a closed socket, as of a journal that ended: the service answers and stops', async () => {
    const child = spawn(NODE, ARGS, { stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(child);
    child.stdout.destroy();
    await serves();
    await untilDegraded();
    expect(await stops(child)).toEqual([0, null]);
  });

  test('to a terminal that is gone: the service answers, and a stop ends in time', async () => {
    const pidFile = folder.file('pid');
    const command = `echo $$ > ${pidFile}; exec ${[NODE, ...ARGS].join(' ')}`;
    const terminal = spawn('script', ['-qfc', command, '/dev/null'], { stdio: ['ignore', 'ignore', 'ignore'] });
    children.push(terminal);
    await serves();
    await until('the server has written its process ID', () => existsSync(pidFile));
    const pid = Number(readFileSync(pidFile, 'utf8'));
    terminal.kill('SIGKILL');
    await once(terminal, 'exit');
    await untilDegraded();
    await serves();
    process.kill(pid, 'SIGTERM');
    await until('the server has stopped', () => !existsSync(`/proc/${pid}`));
  });
});

/** Fills a pipe. */
function fill(fd: number): void {
  for (const size of [4096, 1])
    try {
      for (;;) writeSync(fd, Buffer.alloc(size, '\n'));
    } catch {
      // Full.
    }
}

/** What a pipe has now. */
function read(fd: number): string {
  const chunk = Buffer.alloc(2 ** 20);
  try {
    return chunk.toString('utf8', 0, readSync(fd, chunk));
  } catch {
    return '';
  }
}
