/** The soft token of opencryptoki in a separate folder. Its paths are compiled in, so its programs run in a mount namespace. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './until.ts';

/** The library takes four to eight characters. */
export const OPENCRYPTOKI_PIN = 'pin-4711';
export const OPENCRYPTOKI_LABEL = 'est soft';
const [SO_PIN, FACTORY_SO_PIN, FIRST_PIN] = ['so-pin-1', '87654321', '11111111'];
/** Debian links /var/run and /var/lock to folders of /run. */
const MOUNTS =
  'mount --bind "$0/lib" /var/lib/opencryptoki && mount --bind "$0/run" /run && exec sleep infinity' as const;

export class Opencryptoki {
  readonly #folder: string;
  /** Keeps the namespace, also while the daemon restarts. */
  readonly #namespace: ChildProcess;
  #daemon: ChildProcess | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
    for (const part of ['lib/swtok/TOK_OBJ', 'run/lock/opencryptoki/swtok'])
      mkdirSync(join(folder, part), { recursive: true });
    this.#namespace = spawn('unshare', ['--mount', '--ipc', 'sh', '-c', MOUNTS, folder], { stdio: 'ignore' });
    writeFileSync(this.node, `#!/bin/sh\nexec nsenter ${this.#inside.join(' ')} '${process.execPath}' "$@"\n`, {
      mode: 0o755,
    });
  }

  /** Node.js in the namespace. */
  get node(): string {
    return join(this.#folder, 'node');
  }

  get #inside(): readonly string[] {
    return ['--target', String(this.#namespace.pid), '--mount', '--ipc'];
  }

  /** With a new token. @param folder an empty one */
  static async start(folder: string): Promise<Opencryptoki> {
    const started = new Opencryptoki(folder);
    try {
      const comm = `/proc/${String(started.#namespace.pid)}/comm`;
      await until('the namespace', () => readFileSync(comm, 'latin1') === 'sleep\n');
      await started.#startDaemon();
      const tokens = started.#pkcsconf(['-t']);
      const slot = /^Token #(\d+) Info:(?:(?!\nToken)[^])*?SoftTok/m.exec(tokens)?.[1];
      if (slot === undefined) throw new Error('no soft token');
      for (const args of [
        ['-I', '-S', FACTORY_SO_PIN],
        ['-P', '-S', FACTORY_SO_PIN, '-n', SO_PIN],
        ['-u', '-S', SO_PIN, '-n', FIRST_PIN],
        ['-p', '-U', FIRST_PIN, '-n', OPENCRYPTOKI_PIN],
      ])
        started.#pkcsconf(['-c', slot, ...args]);
      return started;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  #pkcsconf(args: readonly string[]): string {
    const input = `${OPENCRYPTOKI_LABEL}\n`;
    return execFileSync('nsenter', [...this.#inside, 'pkcsconf', ...args], {
      ...{ input, encoding: 'utf8', stdio: 'pipe', timeout: 60_000 },
    });
  }

  async restart(): Promise<void> {
    await this.#stopDaemon();
    await this.#startDaemon();
  }

  async stop(): Promise<void> {
    await this.#stopDaemon();
    this.#namespace.kill();
  }

  async #stopDaemon(): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const ended = new Promise((resolve) => daemon.once('exit', resolve));
    // With SIGTERM it may wait for its clients.
    daemon.kill('SIGKILL');
    await ended;
    rmSync(this.#socket, { force: true });
  }

  async #startDaemon(): Promise<void> {
    this.#daemon = spawn('nsenter', [...this.#inside, 'pkcsslotd', '-f'], { stdio: 'ignore' });
    await until('the socket of pkcsslotd', () => existsSync(this.#socket));
  }

  get #socket(): string {
    return join(this.#folder, 'run/pkcsslotd.socket');
  }
}
