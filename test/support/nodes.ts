/** Three nodes on one PostgreSQL with a synchronous standby, behind HAProxy, with faults under load. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { Balancer, type ProbePolicy } from './balancer.ts';
import { Disk } from './chaos/disk.ts';
import { onTheWire, simpleCsr, type TestKey } from './csr.ts';
import { caSection, section } from './estuary.ts';
import { call, type Answer } from './https.ts';
import { freePorts } from './ports.ts';
import { PostgresCluster, psql } from './postgres.ts';
import { makeQuickstart } from './quickstart.ts';
import { startServer, type ServerProcess } from './server-process.ts';
import { untilReady } from './spawned.ts';
import { TcpRelay } from './tcp-relay.ts';
import { pause, until } from './until.ts';
import { removeFolder } from './folders.ts';

/** MiB of a database's disk; the file that it lies in has holes. */
const DISK = 4096;

/** Role of the nodes; PostgreSQL exempts the cluster's owner from the connection limit. */
const ROLE = 'est';

export interface Node {
  readonly name: string;
  readonly estPort: number;
  readonly adminPort: number;
  /** Its ways to the database and to the standby. */
  readonly relays: readonly [TcpRelay, TcpRelay];
  server: ServerProcess;
}

export interface NodesOptions {
  readonly count?: number;
  /** Each server of the database has a small disk, which can be filled; requires root. */
  readonly disks?: boolean;
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The balancer's; unless told, a busy node is not taken for one that is gone. */
  readonly probes?: ProbePolicy;
  /** What is else in every node's configuration. */
  readonly configure?: (config: TomlTable) => void;
}

export class Nodes {
  readonly dir: string;
  readonly all: Node[] = [];
  readonly root: string;
  primary: PostgresCluster;
  standby: PostgresCluster;
  #balancer: Balancer | undefined;
  readonly #disks: Map<string, Disk>;

  private constructor(dir: string, primary: PostgresCluster, standby: PostgresCluster, disks: Map<string, Disk>) {
    this.dir = dir;
    this.primary = primary;
    this.standby = standby;
    this.#disks = disks;
    this.root = readFileSync(join(dir, 'ca/root.pem'), 'latin1');
  }

  static async start(options: NodesOptions = {}): Promise<Nodes> {
    const {
      count = 3,
      disks: hasDisks = false,
      configure = () => undefined,
      probes = { fall: 3, check: 20 },
    } = options;
    const dir = mkdtempSync(join(tmpdir(), 'estuary-nodes-'));
    await makeQuickstart(dir);
    for (const name of ['lookup.key', 'shared.key', 'otp.key'])
      writeFileSync(join(dir, name), randomBytes(32).toString('base64'), { mode: 0o600 });
    const disks = new Map<string, Disk>();
    const folder = hasDisks ? { folder: folderOnDisk(disks) } : {};
    const primary = await PostgresCluster.start({
      durable: true,
      settings: { max_wal_size: '128MB', ...options.settings },
      ...folder,
    });
    await primary.sql(`CREATE ROLE ${ROLE} LOGIN`);
    await primary.sql(`CREATE DATABASE est OWNER ${ROLE}`);
    const standby = await primary.standby(hasDisks ? folderOnDisk(disks) : undefined);
    const ports = await freePorts(count * 2 + 2);
    const nodes = new Nodes(dir, primary, standby, disks);
    try {
      for (let n = 1; n <= count; n++) {
        const [estPort = 0, adminPort = 0] = ports.splice(0, 2);
        const relays = [await TcpRelay.start(primary.port), await TcpRelay.start(standby.port)] as const;
        const node = { name: `est-${n}`, estPort, adminPort, relays };
        nodes.#configure(node, configure);
        nodes.all.push({ ...node, server: await nodes.#launch(node) });
      }
      const [est = 0, admin = 0] = ports;
      nodes.#balancer = await Balancer.start(dir, [est, admin], nodes.all, probes);
      return nodes;
    } catch (error) {
      await nodes.stop();
      throw error;
    }
  }

  /** What a node's configuration takes from its environment. */
  environment({ relays }: Pick<Node, 'relays'>): Readonly<Record<string, string>> {
    const hosts = relays.map(({ port }) => `127.0.0.1:${port}`).join(',');
    return { DATABASE: `postgresql://${ROLE}@${hosts}/est` };
  }

  get balancer(): Balancer {
    if (this.#balancer === undefined) throw new Error('not started');
    return this.#balancer;
  }

  node(n: number): Node {
    const node = this.all[n % this.all.length];
    if (node === undefined) throw new Error('no such node');
    return node;
  }

  async relaunch(node: Node): Promise<void> {
    await node.server.exited;
    node.server = await this.#launch(node);
  }

  /** As docs/guides/postgresql.md has it: drained, stopped, another release in its place, and taken in again once it is ready. */
  async replace(node: Node, program: string | undefined): Promise<void> {
    await this.balancer.drain(node);
    await node.server.stop();
    node.server = await this.#launch(node, program);
    await this.#untilWell(node, 240_000);
    await this.balancer.take(node);
  }

  /** Rows of the database, as its owner sees it. */
  sql(statement: string): Promise<string[][]> {
    return psql(this.primary.url('est'), statement);
  }

  /** The primary is gone; its standby replaces it and gets a new standby. */
  async failOver(): Promise<void> {
    const former = this.primary;
    await former.end('SIGQUIT');
    await this.standby.promote();
    this.primary = this.standby;
    this.standby = await this.primary.standby(this.#disks.size > 0 ? folderOnDisk(this.#disks) : undefined);
    for (const { relays } of this.all) {
      const [first, second] = relays;
      // The host that was the standby's is the primary's now.
      const free = first.target === former.port ? first : second;
      free.pointTo(this.standby.port);
    }
    await former.stop();
    await this.#removeDisks([former.folder]);
  }

  /** Takes all room that the primary has. */
  fillDisk(): void {
    this.#disk().fill();
  }

  /** Gives it back, and starts the primary where that has ended for want of it. */
  async emptyDisk(): Promise<void> {
    this.#disk().empty();
    await until('PostgreSQL answers', async () => {
      if (!this.primary.isRunning) await this.primary.launch();
      return (await this.sql('SELECT 1').catch(() => [])).length === 1;
    });
  }

  #disk(): Disk {
    const disk = this.#disks.get(this.primary.folder);
    if (disk === undefined) throw new Error('the primary has no separate disk');
    return disk;
  }

  async #removeDisks(all: readonly string[]): Promise<void> {
    for (const folder of all) {
      const disk = this.#disks.get(folder);
      this.#disks.delete(folder);
      if (disk !== undefined) await removed(disk, folder);
    }
  }

  async admin(node: Pick<Node, 'adminPort'>, method: string, path: string, body?: unknown): Promise<Answer> {
    const token = readFileSync(join(this.dir, 'admin/token'), 'latin1').trim();
    return call({
      port: node.adminPort,
      path,
      method,
      tls: { ca: this.root },
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
    });
  }

  /** One enrollment over the balancer, on a new connection. */
  enroll(key: TestKey, cn: string, password: string, label = ''): Promise<Answer> {
    return call({
      port: this.balancer.estPort,
      path: `/.well-known/est/${label === '' ? '' : `${label}/`}simpleenroll`,
      method: 'POST',
      headers: {
        'Content-Type': 'application/pkcs10',
        Authorization: `Basic ${Buffer.from(`device:${password}`).toString('base64')}`,
      },
      tls: { ca: this.root },
      body: onTheWire(simpleCsr(key, cn)),
    });
  }

  /** Waits until every node says that it takes requests. */
  async untilWell(atMost = 240_000): Promise<void> {
    for (const node of this.all) await this.#untilWell(node, atMost);
  }

  #untilWell(node: Node, atMost: number): Promise<void> {
    return untilReady(
      node.name,
      async () => {
        const answer = await this.admin(node, 'GET', '/readyz').catch(() => undefined);
        return answer?.status === 200;
      },
      atMost,
    );
  }

  async stop(): Promise<void> {
    await this.#balancer?.stop();
    await Promise.all(
      this.all.map(async ({ server }) => {
        server.signal('SIGCONT');
        await server.stop();
      }),
    );
    for (const { relays } of this.all) for (const relay of relays) await relay.die();
    await this.standby.stop();
    await this.primary.stop();
    await this.#removeDisks([...this.#disks.keys()]);
    removeFolder(this.dir);
  }

  #configure({ name, estPort, adminPort }: Omit<Node, 'server'>, more: (config: TomlTable) => void): void {
    const config = parse(readFileSync(join(this.dir, 'est.toml'), 'utf8'));
    Object.assign(section(config, 'est'), { port: estPort, host: '127.0.0.1', retry_after: 1 });
    Object.assign(section(config, 'admin'), { port: adminPort, host: '127.0.0.1' });
    Object.assign(section(config, 'otp'), {
      hash_algorithm: 'sha256-hmac',
      hmac_key_file: 'otp.key',
      lookup_key_file: 'lookup.key',
      retry_window: 3600,
      max_failures: 10_000,
    });
    config['store'] = { driver: 'postgres', url_env: 'DATABASE', node_name: name, shared_key_file: 'shared.key' };
    section(config, 'server')['shutdown_grace'] = 2;
    mkdirSync(join(this.dir, name));
    section(config, 'audit')['file'] = `${name}/audit.log`;
    caSection(config, 1)['approval'] = 'manual';
    more(config);
    writeFileSync(join(this.dir, `${name}.toml`), stringify(config));
  }

  #launch(node: Pick<Node, 'name' | 'relays'>, program?: string): Promise<ServerProcess> {
    return startServer({
      ...(program === undefined ? {} : { program }),
      config: join(this.dir, `${node.name}.toml`),
      env: this.environment(node),
      timeout: 300_000,
    });
  }
}

/** PostgreSQL's processes end a moment after the first of them. */
async function removed(disk: Disk, folder: string): Promise<void> {
  for (let tries = 0; ; tries++)
    try {
      disk.remove();
      removeFolder(folder);
      return;
    } catch (error) {
      if (tries === 100) throw error;
      await pause(100);
    }
}

/** An empty folder on a separate disk. */
function folderOnDisk(disks: Map<string, Disk>): string {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-postgres-'));
  disks.set(folder, Disk.make(`${folder}.disk`, folder, DISK));
  return folder;
}
