import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Kdc } from './kdc.ts';

/** A real gssproxy that holds a keytab for processes of this user, on a socket of its own. */
export class Gssproxy {
  readonly #kdc: Kdc;
  readonly #dir: string;
  #process: ChildProcess | undefined;

  private constructor(kdc: Kdc, dir: string) {
    this.#kdc = kdc;
    this.#dir = dir;
  }

  static async start(kdc: Kdc, keytab = kdc.keytab): Promise<Gssproxy> {
    const dir = await mkdtemp(join(kdc.dir, 'gssproxy-'));
    const proxy = new Gssproxy(kdc, dir);
    await mkdir(join(dir, 'conf.d'));
    await writeFile(
      join(dir, 'gssproxy.conf'),
      `[gssproxy]
[service/estuary]
  mechs = krb5
  socket = ${proxy.socket}
  cred_store = keytab:${keytab}
  euid = ${String(process.getuid?.() ?? 0)}
`,
    );
    await proxy.up();
    return proxy;
  }

  get socket(): string {
    return join(this.#dir, 'estuary.sock');
  }

  async up(): Promise<void> {
    const { socket } = this;
    await rm(socket, { force: true });
    const args = ['-i', '-c', join(this.#dir, 'gssproxy.conf'), '-C', join(this.#dir, 'conf.d')];
    this.#process = spawn('/usr/sbin/gssproxy', [...args, '-s', join(this.#dir, 'default.sock')], {
      env: { ...process.env, ...this.#kdc.env },
      stdio: 'ignore',
    });
    for (let attempt = 0; attempt < 200; attempt++) {
      const there = await stat(socket).then(
        () => true,
        () => false,
      );
      if (there) return;
      await sleep(25);
    }
    throw new Error('gssproxy does not listen');
  }

  /** Sends a signal, e.g. SIGSTOP or SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#dir, { recursive: true, force: true });
  }
}
