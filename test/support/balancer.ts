/** HAProxy in front of several nodes, as in docs/guides/postgresql.md: TCP, with each node's readiness probe. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { accepts } from './ports.ts';
import { findCommand } from './requires.ts';
import { killed, untilReady } from './spawned.ts';

export interface Balanced {
  readonly name: string;
  readonly estPort: number;
  readonly adminPort: number;
}

/** When a node is taken for gone: after so many probes in turn without an answer within so many seconds. */
export interface ProbePolicy {
  readonly fall: number;
  readonly check: number;
}

export class Balancer {
  readonly estPort: number;
  readonly adminPort: number;
  readonly #socket: string;
  readonly #process: ChildProcess;

  private constructor(estPort: number, adminPort: number, socket: string, process: ChildProcess) {
    this.estPort = estPort;
    this.adminPort = adminPort;
    this.#socket = socket;
    this.#process = process;
  }

  /** @param ports two free ones. @param dir for its files */
  static async start(
    dir: string,
    [est, admin]: readonly [number, number],
    nodes: readonly Balanced[],
    probes: ProbePolicy,
  ): Promise<Balancer> {
    const socket = join(dir, 'haproxy.sock');
    const file = join(dir, 'haproxy.cfg');
    const servers = (portOf: (node: Balanced) => number): string =>
      nodes
        .map(
          (node) =>
            `  server ${node.name} 127.0.0.1:${portOf(node)} check check-ssl verify none port ${node.adminPort} inter 500 fall ${probes.fall} rise 1`,
        )
        .join('\n');
    writeFileSync(
      file,
      `
global
  maxconn 200
  stats socket ${socket} mode 600 level admin
defaults
  mode tcp
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check ${probes.check}s
  balance roundrobin
  option redispatch
  option httpchk GET /readyz
listen est
  bind 127.0.0.1:${est}
${servers(({ estPort }) => estPort)}
listen admin
  bind 127.0.0.1:${admin}
${servers(({ adminPort }) => adminPort)}
`,
    );
    const process = spawn(findCommand('haproxy') ?? 'haproxy', ['-db', '-f', file], { stdio: 'ignore' });
    const balancer = new Balancer(est, admin, socket, process);
    await untilReady('HAProxy', () => accepts(est));
    return balancer;
  }

  /** Sends a node nothing new, and waits until it has answered what it has. */
  async drain(node: Balanced): Promise<void> {
    await this.#set(node, 'drain');
    await untilReady(
      `the last connection of ${node.name}`,
      async () => (await this.#servers(node)).every(({ connections }) => connections === 0),
      120_000,
    );
  }

  /** Sends a node requests again, and waits until it is one of those. */
  async take(node: Balanced): Promise<void> {
    await this.#set(node, 'ready');
    await untilReady(
      `${node.name} behind HAProxy`,
      async () => (await this.#servers(node)).every(({ status }) => status.startsWith('UP')),
      120_000,
    );
  }

  stop(): Promise<void> {
    return killed(this.#process);
  }

  async #set({ name }: Balanced, state: 'drain' | 'ready'): Promise<void> {
    for (const proxy of ['est', 'admin']) await this.#tell(`set server ${proxy}/${name} state ${state}`);
  }

  async #servers({ name }: Balanced): Promise<readonly { readonly status: string; readonly connections: number }[]> {
    const [head = '', ...lines] = (await this.#tell('show stat')).replace(/^# /, '').trim().split('\n');
    const columns = head.split(',');
    const rows = lines.map((line) => line.split(','));
    const of = (row: readonly string[], column: string): string => row[columns.indexOf(column)] ?? '';
    const found = rows.filter((row) => of(row, 'svname') === name);
    if (found.length !== 2) throw new Error(`HAProxy does not know ${name}`);
    return found.map((row) => ({ status: of(row, 'status'), connections: Number(of(row, 'scur')) }));
  }

  /** A command of its runtime API. @throws {Error} where it complains */
  async #tell(command: string): Promise<string> {
    const socket = connect(this.#socket);
    await once(socket, 'connect');
    socket.end(`${command}\n`);
    const answer = await text(socket);
    if (command.startsWith('set') && answer.trim() !== '') throw new Error(`HAProxy: ${answer}`);
    return answer;
  }
}
