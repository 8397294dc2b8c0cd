/** What several nodes and their database have used so far: CPU, statements, commits, round trips, octets. */
import type { Nodes } from '../../../test/support/nodes.ts';
import { cpuSeconds } from './cpu.ts';

/** Of all nodes together. */
export interface Costs {
  /** Milliseconds of CPU: of the nodes, of PostgreSQL's primary with its standby. */
  readonly servers: number;
  readonly database: number;
  /** Statements, and those of them that are a COMMIT. */
  readonly statements: number;
  readonly commits: number;
  /** As `pg_stat_database` counts them: a read is one, too. */
  readonly transactions: number;
  /** Times that the database's log was forced to disk, and its octets. */
  readonly flushes: number;
  readonly log: number;
  /** Round trips between a node and the database, and octets both ways. */
  readonly turns: number;
  readonly octets: number;
}

const QUERIES = {
  statements: 'SELECT sum(calls) FROM pg_stat_statements',
  commits: "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query = 'COMMIT'",
  transactions: "SELECT xact_commit FROM pg_stat_database WHERE datname = 'est'",
  flushes: 'SELECT wal_sync FROM pg_stat_wal',
  log: 'SELECT wal_bytes FROM pg_stat_wal',
};

/** What the database has to be started with. */
export const COUNTING = { shared_preload_libraries: "'pg_stat_statements'" };

/** Before the first look. */
export async function startCounting(nodes: Nodes): Promise<void> {
  await nodes.sql('CREATE EXTENSION pg_stat_statements');
}

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/** A look at all of it; what is counted in this process and by the kernel is of now, the rest of a moment later. */
export async function look(nodes: Nodes): Promise<Costs> {
  const traffic = nodes.all.flatMap(({ relays }) => relays.map((relay) => relay.traffic));
  const here = {
    servers: 1000 * sum(nodes.all.map(({ server }) => cpuSeconds(server.pid))),
    database: 1000 * sum([nodes.primary, nodes.standby].map(({ pid }) => (pid === undefined ? 0 : cpuSeconds(pid)))),
    turns: sum(traffic.map(({ turns }) => turns)),
    octets: sum(traffic.map(({ sent, received }) => sent + received)),
  };
  const columns = Object.values(QUERIES).map((sql) => `(${sql})`);
  const [row = []] = await nodes.sql(`SELECT ${columns.join(', ')}`);
  const [statements = 0, commits = 0, transactions = 0, flushes = 0, log = 0] = row.map(Number);
  return { ...here, statements, commits, transactions, flushes, log };
}

/** Combines two of them, quantity by quantity. */
export function combine(one: Costs, other: Costs, how: (one: number, other: number) => number): Costs {
  return {
    servers: how(one.servers, other.servers),
    database: how(one.database, other.database),
    statements: how(one.statements, other.statements),
    commits: how(one.commits, other.commits),
    transactions: how(one.transactions, other.transactions),
    flushes: how(one.flushes, other.flushes),
    log: how(one.log, other.log),
    turns: how(one.turns, other.turns),
    octets: how(one.octets, other.octets),
  };
}
