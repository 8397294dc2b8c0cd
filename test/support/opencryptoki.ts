/** The soft token of opencryptoki. Its daemon and its data belong to the machine: there is one. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runText } from './command.ts';
import { until } from './until.ts';

/** The library takes four to eight characters. */
export const OPENCRYPTOKI_PIN = 'pin-4711';
export const OPENCRYPTOKI_LABEL = 'est soft';
const [SO_PIN, FACTORY_SO_PIN, FIRST_PIN] = ['so-pin-1', '87654321', '11111111'];
const SOCKET = '/run/pkcsslotd.socket';
const DATA = '/var/lib/opencryptoki/swtok';

export class Opencryptoki {
  #daemon: ChildProcess | undefined;

  /** With a new token, in place of an earlier test's. */
  static async start(): Promise<Opencryptoki> {
    const started = new Opencryptoki();
    removeToken();
    try {
      await started.#startDaemon();
      const slot = /^Token #(\d+) Info:(?:(?!\nToken)[^])*?SoftTok/m.exec(await runText('pkcsconf', ['-t']))?.[1];
      if (slot === undefined) throw new Error('no soft token');
      for (const args of [
        ['-I', '-S', FACTORY_SO_PIN],
        ['-P', '-S', FACTORY_SO_PIN, '-n', SO_PIN],
        ['-u', '-S', SO_PIN, '-n', FIRST_PIN],
        ['-p', '-U', FIRST_PIN, '-n', OPENCRYPTOKI_PIN],
      ])
        execFileSync('pkcsconf', ['-c', slot, ...args], {
          ...{ input: `${OPENCRYPTOKI_LABEL}\n`, stdio: 'pipe', timeout: 60_000 },
        });
      return started;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.#startDaemon();
  }

  async stop(): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const ended = new Promise((resolve) => daemon.once('exit', resolve));
    // With SIGTERM it may wait for its clients.
    daemon.kill('SIGKILL');
    await ended;
    rmSync(SOCKET, { force: true });
  }

  async #startDaemon(): Promise<void> {
    this.#daemon = spawn('pkcsslotd', ['-f'], { stdio: 'ignore' });
    await until('the socket of pkcsslotd', () => existsSync(SOCKET));
  }
}

function removeToken(): void {
  const file = join(DATA, 'NVTOK.DAT');
  if (!existsSync(file)) return;
  const label = readFileSync(file, 'latin1').slice(0, 32).trimEnd();
  if (label !== OPENCRYPTOKI_LABEL && label !== 'IBM OS PKCS#11') throw new Error(`${DATA} has the token "${label}"`);
  const objects = readdirSync(join(DATA, 'TOK_OBJ')).map((name) => join('TOK_OBJ', name));
  for (const name of ['NVTOK.DAT', 'MK_SO', 'MK_USER', ...objects]) rmSync(join(DATA, name), { force: true });
}
