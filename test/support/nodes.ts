/**
 * Three nodes on one PostgreSQL with a synchronous standby, behind HAProxy: what is broken on purpose, the load meanwhile, and what the
 * clients know of it afterwards.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, stringify } from 'smol-toml';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeKey, onTheWire, simpleCsr, type TestKey } from './csr.ts';
import { caSection, certificatesOf, section } from './estuary.ts';
import { call, type Answer } from './https.ts';
import { accepts, freePorts } from './ports.ts';
import { PostgresCluster, psql } from './postgres.ts';
import { makeQuickstart } from './quickstart.ts';
import { findCommand } from './requires.ts';
import { startServer, type ServerProcess } from './server-process.ts';
import { killed, untilReady } from './spawned.ts';
import { TcpRelay } from './tcp-relay.ts';

/** Of the nodes; PostgreSQL lets whoever owns the cluster in, however many connections there are. */
const ROLE = 'est';

export interface Node {
  readonly name: string;
  readonly estPort: number;
  readonly adminPort: number;
  /** Its ways to the database and to the standby. */
  readonly relays: readonly [TcpRelay, TcpRelay];
  server: ServerProcess;
}

export class Nodes {
  readonly dir: string;
  readonly all: Node[] = [];
  readonly balancer: number;
  readonly root: string;
  primary: PostgresCluster;
  standby: PostgresCluster;
  #haproxy: ChildProcess | undefined;

  private constructor(dir: string, balancer: number, primary: PostgresCluster, standby: PostgresCluster) {
    this.dir = dir;
    this.balancer = balancer;
    this.primary = primary;
    this.standby = standby;
    this.root = readFileSync(join(dir, 'ca/root.pem'), 'latin1');
  }

  static async start(count = 3): Promise<Nodes> {
    const dir = mkdtempSync(join(tmpdir(), 'estuary-nodes-'));
    await makeQuickstart(dir);
    for (const name of ['lookup.key', 'shared.key', 'otp.key'])
      writeFileSync(join(dir, name), randomBytes(32), { mode: 0o600 });
    const primary = await PostgresCluster.start({ durable: true });
    await primary.sql(`CREATE ROLE ${ROLE} LOGIN`);
    await primary.sql(`CREATE DATABASE est OWNER ${ROLE}`);
    const standby = await primary.standby();
    const ports = await freePorts(count * 2 + 1);
    const nodes = new Nodes(dir, ports.pop() ?? 0, primary, standby);
    try {
      for (let n = 1; n <= count; n++) {
        const [estPort = 0, adminPort = 0] = ports.splice(0, 2);
        const relays = [await TcpRelay.start(primary.port), await TcpRelay.start(standby.port)] as const;
        const node = { name: `est-${n}`, estPort, adminPort, relays };
        nodes.#configure(node);
        nodes.all.push({ ...node, server: await nodes.#launch(node) });
      }
      await nodes.#balance();
      return nodes;
    } catch (error) {
      await nodes.stop();
      throw error;
    }
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

  /** Rows of the database, as its owner sees it. */
  sql(statement: string): Promise<string[][]> {
    return psql(this.primary.url('est'), statement);
  }

  /** The primary is gone; its standby takes its place, and gets one of its own. */
  async failOver(): Promise<void> {
    const former = this.primary;
    await former.end('SIGQUIT');
    await this.standby.promote();
    this.primary = this.standby;
    this.standby = await this.primary.standby();
    for (const { relays } of this.all) {
      const [first, second] = relays;
      // The host that was the standby's is the primary's now.
      const free = first.target === former.port ? first : second;
      free.pointTo(this.standby.port);
    }
    await former.stop();
  }

  async admin(node: Node, method: string, path: string, body?: unknown): Promise<Answer> {
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

  /** One enrolment over the balancer, on a connection of its own. */
  enroll(key: TestKey, cn: string, password: string, label = ''): Promise<Answer> {
    return call({
      port: this.balancer,
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
  async untilWell(atMost = 90_000): Promise<void> {
    for (const node of this.all)
      await untilReady(
        node.name,
        async () => {
          const answer = await this.admin(node, 'GET', '/readyz').catch(() => undefined);
          return answer?.status === 200;
        },
        atMost,
      );
  }

  async stop(): Promise<void> {
    await killed(this.#haproxy);
    await Promise.all(
      this.all.map(async ({ server }) => {
        server.signal('SIGCONT');
        await server.stop();
      }),
    );
    for (const { relays } of this.all) for (const relay of relays) await relay.die();
    await this.standby.stop();
    await this.primary.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  #configure({ name, estPort, adminPort }: Omit<Node, 'server'>): void {
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
    writeFileSync(join(this.dir, `${name}.toml`), stringify(config));
  }

  #launch({ name, relays }: Pick<Node, 'name' | 'relays'>): Promise<ServerProcess> {
    const hosts = relays.map(({ port }) => `127.0.0.1:${port}`).join(',');
    return startServer({
      config: join(this.dir, `${name}.toml`),
      env: { DATABASE: `postgresql://${ROLE}@${hosts}/est` },
      timeout: 120_000,
    });
  }

  async #balance(): Promise<void> {
    const servers = this.all.map(
      ({ name, estPort, adminPort }) =>
        `  server ${name} 127.0.0.1:${estPort} check check-ssl verify none port ${adminPort} inter 500 fall 2 rise 1`,
    );
    const file = join(this.dir, 'haproxy.cfg');
    writeFileSync(
      file,
      `
global
  maxconn 200
defaults
  mode tcp
  timeout connect 2s
  timeout client 60s
  timeout server 60s
listen est
  bind 127.0.0.1:${this.balancer}
  balance roundrobin
  option redispatch
  option httpchk GET /readyz
${servers.join('\n')}
`,
    );
    this.#haproxy = spawn(findCommand('haproxy') ?? 'haproxy', ['-db', '-f', file], { stdio: 'ignore' });
    await untilReady('HAProxy', () => accepts(this.balancer));
  }
}

/** What a client knows of one token. */
export interface Enrolled {
  readonly cn: string;
  readonly token: string;
  readonly statuses: number[];
  /** Serial numbers of the certificates that it was sent, hex. */
  readonly serials: Set<string>;
}

/** Clients that enroll over the balancer, each with one token after the other, until they are told to end; what is not answered is asked again. */
export class Load {
  readonly history: Enrolled[] = [];
  /** What approvals of one request by two administrators at once came to, and how the request ended. */
  readonly decisions: { readonly id: string; readonly statuses: readonly number[] }[] = [];
  readonly #nodes: Nodes;
  readonly #keys: TestKey[] = [makeKey('P-256'), makeKey('P-256'), makeKey('P-256'), makeKey('P-256')];
  #count = 0;
  #stopping = false;
  #clients: Promise<void>[] = [];

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  start(clients = 3): void {
    this.#stopping = false;
    this.#clients = Array.from({ length: clients }, (_, n) => this.#client(n));
  }

  /** Waits until what was begun has its answer. */
  async end(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#clients);
  }

  async #client(n: number): Promise<void> {
    const key = this.#keys[n];
    if (key === undefined) throw new Error('no key');
    while (!this.#stopping) {
      const cn = `device-${++this.#count}`;
      const token = await this.#token(cn);
      if (token === undefined) continue;
      const one: Enrolled = { cn, token, statuses: [], serials: new Set() };
      this.history.push(one);
      await this.#enroll(one, key);
      // Once more: the same certificate, from whichever node.
      if (this.#count % 5 === 0) await this.#enroll(one, key);
    }
  }

  async #enroll(one: Enrolled, key: TestKey): Promise<void> {
    for (const end = performance.now() + 120_000; performance.now() < end;) {
      const answer = await this.#nodes.enroll(key, one.cn, one.token).catch(() => undefined);
      if (answer !== undefined) one.statuses.push(answer.status);
      if (answer === undefined || answer.status === 503) {
        await sleep(200);
        continue;
      }
      if (answer.status === 200)
        for (const der of certificatesOf(answer)) one.serials.add(parseCertificate(der).serialNumber);
      return;
    }
    throw new Error(`${one.cn} got no certificate: ${one.statuses.join(' ')}`);
  }

  /** From any node that answers. */
  async #token(cn: string): Promise<string | undefined> {
    const node = this.#nodes.node(this.#count);
    const answer = await Promise.race([
      this.#nodes.admin(node, 'POST', '/admin/otp', { client_id: cn }).catch(() => undefined),
      sleep(3000, undefined, { ref: false }),
    ]);
    if (answer?.status !== 201) {
      await sleep(100);
      return undefined;
    }
    const { token } = JSON.parse(answer.text) as { token: string };
    return token;
  }

  /** Queues a request, and has two administrators decide it differently at two nodes. */
  async decide(): Promise<void> {
    const key = makeKey('P-256');
    const cn = `queued-${++this.#count}`;
    const token = await this.#token(cn);
    if (token === undefined) return;
    const queued = await this.#nodes.enroll(key, cn, token, 'lab');
    if (queued.status !== 202) throw new Error(`not queued: ${queued.status} ${queued.text}`);
    const [[id = ''] = []] = await this.#nodes.sql(`SELECT id FROM request WHERE subject = 'CN=${cn}'`);
    const answers = await Promise.all([
      this.#nodes.admin(this.#nodes.node(0), 'POST', `/admin/requests/${id}/approve`),
      this.#nodes.admin(this.#nodes.node(1), 'POST', `/admin/requests/${id}/reject`, { reason: 'no' }),
    ]);
    this.decisions.push({ id, statuses: answers.map(({ status }) => status).sort() });
  }
}
