import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Kdc } from './kdc.ts';
import { accepts } from './ports.ts';
import { killed, untilReady } from './spawned.ts';
import { removeFolder } from './folders.ts';

/** A real gssproxy that holds a keytab for processes of this user, on a separate socket. */
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
    await untilReady('gssproxy', () => accepts(socket));
  }

  /** Sends a signal, e.g. SIGSTOP or SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    await killed(child);
  }

  async stop(): Promise<void> {
    await this.kill();
    removeFolder(this.#dir);
  }
}
