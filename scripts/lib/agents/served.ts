/**
 * A fleet of `estuary client run` against the built server, with certificates of minutes that stand for two days each. Agents and server
 * are killed, responses are lost, and the root gets a new key. The result counts the faults, and lists each rule that an agent broke.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'smol-toml';
import { caSection, Estuary, itemsOf, section } from '../../../test/support/estuary.ts';
import { liveVersion } from '../../../test/support/estuary-client.ts';
import { Random } from '../../../test/support/random.ts';
import { rollRoot } from '../../../test/support/rollover.ts';
import { NODE, SERVER } from '../../../test/support/server-process.ts';
import { killed } from '../../../test/support/spawned.ts';
import { TcpRelay } from '../../../test/support/tcp-relay.ts';

export interface ServedOptions {
  readonly agents: number;
  /** Agents that are one process. */
  readonly perProcess: number;
  readonly days: number;
  readonly seed: number;
}

export interface ServedResult {
  readonly certificates: number;
  readonly hooks: number;
  readonly kills: number;
  readonly serverKills: number;
  readonly serverRestarts: number;
  readonly lostConnections: number;
  readonly problems: readonly string[];
}

/** Seconds: the least that `validity_seconds` may be, or what two cores need for a process for each renewal. */
const lifetimeOf = (agents: number): number => Math.max(120, agents * 3);
/** Connections that are cut somewhere in the handshake or the answer, of ten. */
const LOST = 1;
/** Octets of a handshake and an answer, about. */
const ANSWER = 9000;

interface Agent {
  readonly name: string;
  readonly folder: string;
  readonly process: AgentProcess;
}

interface AgentProcess {
  readonly config: string;
  child: ChildProcess | undefined;
  kills: number;
}

export async function runServed(options: ServedOptions): Promise<ServedResult> {
  const estuary = await Estuary.start({
    timeout: 120_000,
    configure(config) {
      const profile = section(caSection(config), 'profile');
      delete profile['validity_days'];
      Object.assign(profile, { validity_seconds: lifetimeOf(options.agents), backdate_seconds: 0 });
    },
  });
  const relay = await TcpRelay.start(estuary.server.port('est'));
  const fleet = new ServedFleet(estuary, relay, options);
  try {
    return await fleet.run();
  } finally {
    await fleet.end();
    await relay.die();
    await estuary.stop();
  }
}

class ServedFleet {
  readonly #estuary: Estuary;
  readonly #relay: TcpRelay;
  readonly #options: ServedOptions;
  readonly #random: Random;
  /** Milliseconds of a virtual day: a certificate is one of two days. */
  readonly #day: number;
  readonly #processes: AgentProcess[] = [];
  readonly #agents: Agent[] = [];
  readonly #counts = { kills: 0, serverKills: 0, serverRestarts: 0, lostConnections: 0 };

  constructor(estuary: Estuary, relay: TcpRelay, options: ServedOptions) {
    this.#estuary = estuary;
    this.#relay = relay;
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#day = (lifetimeOf(options.agents) * 1000) / 2;
  }

  async run(): Promise<ServedResult> {
    await this.#make();
    this.#relay.allow(() => {
      if (this.#random.next() * 10 >= LOST) return Infinity;
      this.#counts.lostConnections += 1;
      return this.#random.next() * ANSWER;
    });
    const span = this.#options.days * this.#day;
    const end = performance.now() + span;
    const rollover = performance.now() + span / 2;
    let isRolled = false;
    while (performance.now() < end) {
      await sleep(this.#random.next() * 10_000);
      if (!isRolled && performance.now() > rollover) {
        isRolled = true;
        await this.#rollOver();
      } else await this.#fault();
    }
    this.#relay.allow(() => Infinity);
    return this.#judge();
  }

  async end(): Promise<void> {
    await Promise.all(this.#processes.map(({ child }) => killed(child)));
  }

  /** Each agent has a password for all its enrollments: on a busy machine, certificates of minutes expire. */
  async #make(): Promise<void> {
    const { dir, root } = this.#estuary;
    const fingerprint = new X509Certificate(root).fingerprint256;
    for (let first = 0; first < this.#options.agents; first += this.#options.perProcess) {
      const config = join(dir, `agents-${first}.toml`);
      const process: AgentProcess = { config, child: undefined, kills: 0 };
      const certificate: Record<string, unknown>[] = [];
      for (let n = first; n < Math.min(first + this.#options.perProcess, this.#options.agents); n++) {
        const name = `agent-${n}`;
        const folder = join(dir, 'agents', name);
        mkdirSync(folder, { recursive: true });
        const { token } = await this.#estuary.otp({ client_id: name, max_uses: 1000 });
        writeFileSync(join(folder, 'otp'), token, { mode: 0o600 });
        const hook = `echo "$ESTUARY_VERSION $ESTUARY_SERIAL $(sha256sum < ${folder}/ca.pem)" >> ${folder}/hooks`;
        certificate.push({
          folder,
          subject: `CN=${name}`,
          otp_file: join(folder, 'otp'),
          otp_reusable: true,
          reload: hook,
        });
        this.#agents.push({ name, folder, process });
      }
      const server = { url: `https://localhost:${this.#relay.port}`, ca_fingerprint: fingerprint };
      writeFileSync(config, stringify({ server, certificate }));
      this.#processes.push(process);
      this.#launch(process);
    }
  }

  #launch(process: AgentProcess): void {
    process.child = spawn(NODE, [SERVER, 'client', 'run', '--config', process.config], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [process.child.stdout, process.child.stderr])
      stream?.on('data', (chunk: Buffer) => appendFileSync(`${process.config}.log`, chunk));
  }

  async #fault(): Promise<void> {
    const drawn = this.#random.next();
    if (drawn < 0.1) {
      this.#counts.serverKills += 1;
      this.#estuary.server.signal('SIGKILL');
      await this.#startAgain();
    } else if (drawn < 0.2) {
      this.#counts.serverRestarts += 1;
      await this.#estuary.server.stop();
      await this.#startAgain();
    } else {
      const process = this.#random.pick(this.#processes);
      if (process === undefined) return;
      this.#counts.kills += 1;
      process.kills += 1;
      await killed(process.child);
      this.#launch(process);
    }
  }

  async #startAgain(): Promise<void> {
    await this.#estuary.server.exited;
    await this.#estuary.restart();
    this.#relay.pointTo(this.#estuary.server.port('est'));
  }

  /** The root and the issuing CA get new certificates (RFC 7030 §4.1.3). */
  async #rollOver(): Promise<void> {
    const { dir } = this.#estuary;
    rollRoot(dir);
    this.#estuary.reconfigure((config) => {
      Object.assign(caSection(config), { certificate: 'ca/new-issuing.pem', chain: 'ca/rollover.pem' });
    });
    await this.#estuary.server.stop();
    await this.#startAgain();
  }

  /** Pending requests complete first. */
  async #judge(): Promise<ServedResult> {
    let problems: string[] = [];
    const issued = new Set<string>();
    for (const end = performance.now() + 8 * this.#day; performance.now() < end;) {
      issued.clear();
      for (const serial of await this.#issued()) issued.add(serial);
      problems = this.#agents.flatMap((agent) => problemsOf(agent, issued));
      if (problems.length === 0) break;
      await sleep(2000);
    }
    const hooks = this.#agents.reduce((sum, { folder }) => sum + hooksOf(folder).length, 0);
    return { certificates: issued.size, hooks, ...this.#counts, problems };
  }

  /** Serial numbers in the store. */
  async #issued(): Promise<string[]> {
    const serials: string[] = [];
    for (let cursor = ''; ;) {
      const { status, json } = await this.#estuary.admin('GET', `/admin/certificates?limit=100${cursor}`);
      if (status !== 200) throw new Error(`the list of certificates answered ${status}`);
      serials.push(...itemsOf(json).map(({ serial }) => String(serial)));
      const next = json['next_cursor'];
      if (typeof next !== 'string') return serials;
      cursor = `&cursor=${encodeURIComponent(next)}`;
    }
  }
}

interface Hook {
  readonly version: number;
  readonly serial: string;
  readonly ca: string;
}

function hooksOf(folder: string): readonly Hook[] {
  const file = join(folder, 'hooks');
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'latin1').trimEnd().split('\n');
  return lines.map((line) => {
    const [version = '', serial = '', ca = ''] = line.split(' ');
    return { version: Number(version), serial: serial.toLowerCase(), ca };
  });
}

function problemsOf({ name, folder, process }: Agent, issued: ReadonlySet<string>): string[] {
  const live = join(folder, 'live');
  if (!existsSync(join(live, 'cert.pem'))) return [`${name}: no certificate`];
  const certificate = new X509Certificate(readFileSync(join(live, 'cert.pem')));
  const key = createPublicKey(readFileSync(join(live, 'key.pem')));
  const hooks = hooksOf(folder);
  const last = hooks.at(-1);
  const versions = new Set(hooks.map(({ version }) => version));
  const again = hooks.filter((hook, n) => n > 0 && JSON.stringify(hook) === JSON.stringify(hooks[n - 1])).length;
  const missed = Array.from({ length: liveVersion(folder) }, (_, n) => n + 1).filter(
    (version) => !versions.has(version),
  );
  const found: readonly (readonly [boolean, string])[] = [
    [certificate.validToDate.getTime() < Date.now(), 'its certificate is over'],
    [!certificate.publicKey.equals(key), 'key and certificate are two'],
    [missed.length > 0, `no hook for its versions ${missed.join()}`],
    [again > process.kills, `${again} hooks without a change, and ${process.kills} kills`],
    [last?.serial !== certificate.serialNumber.toLowerCase(), 'the last hook is not of its certificate'],
    [last?.ca !== sha256(readFileSync(join(folder, 'ca.pem'))), 'the last hook is not of its CAs'],
    [hooks.some(({ serial }) => !issued.has(serial)), 'a hook of a certificate that is not in the store'],
  ];
  return found.flatMap(([isSo, what]) => (isSo ? [`${name}: ${what}`] : []));
}

const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
