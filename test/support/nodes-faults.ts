/** Faults of several nodes (nodes.ts): each is caused, lasts, and is repaired as an administrator would. */
import type { Nodes } from './nodes.ts';
import { pause } from './until.ts';

/** @param random numbers from 0 up to 1 */
export type NodesFault = (nodes: Nodes, random: () => number) => Promise<void>;

const anyOf = (nodes: Nodes, random: () => number): Nodes['all'][number] => nodes.node(Math.floor(random() * 3));

const FAULTS: Readonly<Record<string, NodesFault>> = {
  'a node is killed': async (nodes, random) => {
    const node = anyOf(nodes, random);
    node.server.signal('SIGKILL');
    await pause(random() * 3000);
    await nodes.relaunch(node);
  },
  'a node is stopped for longer than its lease, and continued': async (nodes, random) => {
    const { server } = anyOf(nodes, random);
    server.signal('SIGSTOP');
    await pause(22_000 + random() * 4000);
    server.signal('SIGCONT');
  },
  'a node is stopped for a moment, and continued': async (nodes, random) => {
    const { server } = anyOf(nodes, random);
    server.signal('SIGSTOP');
    await pause(500 + random() * 12_000);
    server.signal('SIGCONT');
  },
  'PostgreSQL crashes and starts again': async (nodes, random) => {
    await nodes.primary.end('SIGQUIT');
    await pause(random() * 3000);
    await nodes.primary.launch();
  },
  'PostgreSQL fails over to its synchronous standby': (nodes) => nodes.failOver(),
  'a node is cut off from the database': async (nodes, random) => {
    const { relays } = anyOf(nodes, random);
    for (const relay of relays) relay.silence(true);
    await pause(5000 + random() * 20_000);
    for (const relay of relays) {
      relay.silence(false);
      relay.cut();
    }
  },
  'the database is out of connections': async (nodes, random) => {
    await nodes.primary.sql('ALTER ROLE est CONNECTION LIMIT 3');
    await nodes.primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'est'");
    await pause(3000 + random() * 5000);
    await nodes.primary.sql('ALTER ROLE est CONNECTION LIMIT -1');
  },
};

const DISK_FAULTS: Readonly<Record<string, NodesFault>> = {
  'the disk of the database is full': async (nodes, random) => {
    nodes.fillDisk();
    await pause(3000 + random() * 5000);
    await nodes.emptyDisk();
  },
};

/** Every fault, those of disks where the nodes have some. */
export const nodesFaults = (disks: boolean): Readonly<Record<string, NodesFault>> =>
  disks ? { ...FAULTS, ...DISK_FAULTS } : FAULTS;
