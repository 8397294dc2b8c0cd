/**
 * A server for black-box tests: the built one as a separate process, or the sources in the test's process. Ports in the configuration may be 0:
 * the ports that the kernel chose are read from the server's log.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { FaultyLog } from './faulty-log.ts';
import { ROOT } from './root.ts';
import { recordNote } from './run-notes.ts';
import { until } from './until.ts';
import { ALWAYS_IN_PROCESS, IN_PROCESS } from './wanted-server.ts';

export const SERVER = join(ROOT, 'dist', 'server.js');

/** The pinned Node where npm installed one, else the Node that runs the tests. */
export const NODE = [join(ROOT, 'node_modules', '.bin', 'node')].find((path) => existsSync(path)) ?? process.execPath;

export type ListenerName = 'est' | 'admin' | 'publication';

export interface StartOptions {
  /** Path of the configuration file. */
  readonly config: string;
  /** Starts Node.js elsewhere, such as in other namespaces. */
  readonly node?: string;
  /** The `server.js` of another build than `dist`. */
  readonly program?: string;
  /** The listeners to wait for; EST and admin unless told. */
  readonly listeners?: readonly ListenerName[];
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** How long the start may take, in milliseconds. */
  readonly timeout?: number;
  /** `ulimit -n` of the server. */
  readonly openFiles?: number;
  /** Standard output, in place of a pipe that is always read. */
  readonly log?: FaultyLog;
  /** For a test about the process: signals, exit codes, a kill, memory, sockets, or what blocks the event loop. */
  readonly built?: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServerProcess {
  readonly pid: number;
  /** The port of a listener that has been waited for. */
  port(listener: ListenerName): number;
  /** What has arrived of stdout and stderr. A running server's log arrives after its answers. */
  output(): string;
  /** The JSON lines in {@link output}: for a running server, look at them in a poll. */
  log(): readonly Readonly<Record<string, unknown>>[];
  signal(name: NodeJS.Signals): void;
  /** Resolves when the process is gone. */
  readonly exited: Promise<Exit>;
  /** SIGTERM, and SIGKILL when the server has not stopped after a minute. */
  stop(): Promise<Exit>;
}

const STOP_TIMEOUT = 60_000;

/**
 * Starts `node dist/server.js --config …`, or the sources in this process, and waits until its listeners answer.
 *
 * @throws {Error} with the server's output when it exits or does not listen in time, or when dist/ is older than src/.
 */
export async function startServer(options: StartOptions): Promise<ServerProcess> {
  const place = process.env['ESTUARY_TEST_SERVER'];
  const needsProcess = ['program', 'env', 'openFiles', 'log', 'node'].some((name) => name in options);
  if ((place === ALWAYS_IN_PROCESS || (place === IN_PROCESS && options.built !== true)) && !needsProcess)
    return (await import('./in-process.ts')).startInProcess(options);
  assertBuilt();
  const command = [options.node ?? NODE, options.program ?? SERVER, '--config', options.config];
  const [program, ...args] =
    options.openFiles === undefined
      ? command
      : ['/bin/sh', '-c', `ulimit -n ${options.openFiles} && exec "$0" "$@"`, ...command];
  const child = spawn(program ?? NODE, args, {
    stdio: ['ignore', options.log?.fd ?? 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
  });
  return untilListening(child, options.listeners, options.timeout, options.log);
}

/** Takes over a child process that becomes the server, and waits until its listeners answer. */
export async function untilListening(
  child: ChildProcess,
  listeners: readonly ListenerName[] = ['est', 'admin'],
  timeout = 100_000,
  log?: FaultyLog,
): Promise<ServerProcess> {
  const server = new RunningServer(child, log);
  const began = performance.now();
  try {
    await server.listening(listeners, timeout);
    recordNote('start', 'the built server', performance.now() - began);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return server;
}

/** Waits for a record with these fields in the log. @returns the record, or the last of `count` */
export function untilLogged(
  server: ServerProcess,
  fields: Readonly<Record<string, unknown>>,
  count = 1,
): Promise<Readonly<Record<string, unknown>>> {
  const isIt = (record: Readonly<Record<string, unknown>>): boolean =>
    Object.entries(fields).every(([name, value]) => record[name] === value);
  return until(`${JSON.stringify(fields)} in the log`, () => server.log().filter(isIt)[count - 1]);
}

class RunningServer implements ServerProcess {
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #ports = new Map<string, number>();
  #check: () => void = () => undefined;

  constructor(child: ChildProcess, log?: FaultyLog) {
    this.#child = child;
    this.exited = once(child, 'close').then(() => ({ code: child.exitCode, signal: child.signalCode }));
    for (const stream of [child.stdout, child.stderr]) if (stream !== null) this.#follow(stream);
    const lines = log && this.#follow(log.lines);
    // The next server may have the same log.
    void this.exited.then(() => lines?.close());
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('the server process could not be started');
    return this.#child.pid;
  }

  port(listener: ListenerName): number {
    const port = this.#ports.get(listener);
    if (port === undefined) throw new Error(`the ${listener} listener is not on`);
    return port;
  }

  output(): string {
    return this.#lines.join('\n');
  }

  log(): readonly Readonly<Record<string, unknown>>[] {
    return this.#lines.map(parseRecord).filter((record) => record !== undefined);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async stop(): Promise<Exit> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT);
    const exit = await this.exited;
    clearTimeout(timer);
    return exit;
  }

  listening(listeners: readonly ListenerName[], timeout: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`the server did not listen within ${timeout} ms:\n${this.output()}`));
      }, timeout);
      this.#check = () => {
        if (!listeners.every((listener) => this.#ports.has(listener))) return;
        clearTimeout(timer);
        resolve();
      };
      this.#check();
      void this.exited.then((exit) => {
        clearTimeout(timer);
        reject(new Error(`the server stopped (${exit.signal ?? exit.code ?? 'unknown'}):\n${this.output()}`));
      });
    });
  }

  #follow(stream: Readable): Interface {
    return createInterface({ input: stream }).on('line', (line) => {
      this.#lines.push(line);
      const record = parseRecord(line);
      // Then the listeners of the wait close.
      if (record?.['msg'] === 'the database answers') this.#ports.clear();
      if (record?.['msg'] !== 'listening') return;
      if (typeof record['listener'] !== 'string' || typeof record['port'] !== 'number') return;
      this.#ports.set(record['listener'], record['port']);
      this.#check();
    });
  }
}

export function parseRecord(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A test against last week's build proves nothing. */
function assertBuilt(): void {
  const built = existsSync(SERVER) ? statSync(SERVER).mtimeMs : 0;
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true });
  const newest = Math.max(
    ...sources.filter((entry) => entry.isFile()).map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs),
  );
  if (built < newest) throw new Error('dist/ is missing or older than src/: run `npm run build` first');
}
