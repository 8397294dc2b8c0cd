/** `scripts/bench-nodes`: what an enrollment costs with several nodes on PostgreSQL, beside one server with SQLite on the same machine. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { section } from '../../../test/support/estuary.ts';
import { Nodes } from '../../../test/support/nodes.ts';
import { cpuSeconds } from './cpu.ts';
import { equip, type Fleet, type FleetClient, startFleet } from './fleet.ts';
import type { JobClient, Result } from './load.ts';
import { runJob } from './measure.ts';
import { combine, type Costs, COUNTING, look, startCounting } from './node-costs.ts';
import { median } from './report.ts';
import { ROWS, type Row } from './rows.ts';

const HELP = `Usage: scripts/bench-nodes [--rounds N] [--seconds N] [--clients N,…] [--rows ROW,…] [--nodes N]

  --rounds N         how often each is measured, SQLite and the nodes in turns; medians count (default 3)
  --seconds N        seconds of each measuring (default 4)
  --clients N,…      devices at a time, each with one request in flight (default 1,8,64)
  --rows ROW,…       as of scripts/bench (default kept,kept-otp)
  --nodes N          (default 3)`;

/** Enrollments for each server that do not count, before all; later ones find it warm. */
const WARM_UP = 500;
const STILL_WARM = 30;
/** Seconds of looking at what the nodes do with nothing to do, which is taken off. */
const IDLE = 20;

interface Round {
  readonly result: Result;
  readonly cpu: number;
  /** Of the nodes only. */
  readonly costs?: Costs;
}

interface Series {
  readonly row: Row;
  readonly clients: number;
  readonly sqlite: Round[];
  readonly nodes: Round[];
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    clients: { type: 'string', default: '1,8,64' },
    rows: { type: 'string', default: 'kept,kept-otp' },
    nodes: { type: 'string', default: '3' },
    help: { type: 'boolean', default: false },
  },
});

function wholeNumber(text: string, limit: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= limit) return value;
  throw new Error(`"${text}" is not a whole number from 1 to ${limit}`);
}

/** The devices of the nodes: made at the first, and known to all. */
async function devicesOf(nodes: Nodes, size: number): Promise<Pick<Fleet, 'ca' | 'devices' | 'newcomers'>> {
  const first = nodes.node(0);
  const server = { port: (listener: string) => (listener === 'admin' ? first.adminPort : first.estPort) };
  const all: { newcomer: FleetClient; device: FleetClient }[] = [];
  mkdirSync(join(nodes.dir, 'client'), { recursive: true });
  for (let n = 0; n < size; n++) all.push(await equip(nodes.dir, server, { name: `bench-${n}`, key: 'p-256' }));
  return {
    ca: join(nodes.dir, 'ca/root.pem'),
    devices: all.map(({ device }) => device),
    newcomers: all.map(({ newcomer }) => newcomer),
  };
}

async function main(): Promise<void> {
  if (values.help) {
    console.log(HELP);
    return;
  }
  const [rounds, seconds] = [wholeNumber(values.rounds, 100), wholeNumber(values.seconds, 60)];
  const counts = values.clients.split(',').map((text) => wholeNumber(text, 64));
  const rows = values.rows.split(',').map((id) => {
    const row = ROWS.find((one) => one.id === id);
    if (row === undefined || row.hash !== 'sha256-hmac') throw new Error(`no row "${id}"`);
    return row;
  });
  console.log(
    `Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'CPU'}, load ${loadavg()[0]?.toFixed(0)}; ${rounds} × ${seconds} s each`,
  );
  const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-'));
  const size = Math.max(...counts);
  const fleet = await startFleet(folder, { hash: 'sha256-hmac', size, key: 'p-256' });
  let nodes: Nodes | undefined;
  try {
    nodes = await Nodes.start({
      count: wholeNumber(values.nodes, 9),
      settings: COUNTING,
      // A repeated request is to be a new certificate.
      configure: (config) => Object.assign(section(config, 'otp'), { retry_window: 0 }),
    });
    await startCounting(nodes);
    await compare({ fleet, nodes, folder, rows, counts, rounds, seconds });
  } finally {
    await fleet.server.stop();
    await nodes?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Comparison {
  readonly fleet: Fleet;
  readonly nodes: Nodes;
  readonly folder: string;
  readonly rows: readonly Row[];
  readonly counts: readonly number[];
  readonly rounds: number;
  readonly seconds: number;
}

async function compare({ fleet, nodes, folder, rows, counts, rounds, seconds }: Comparison): Promise<void> {
  const others = { ...fleet, ...(await devicesOf(nodes, fleet.devices.length)) };
  const series: Series[] = rows.flatMap((row) => counts.map((clients) => ({ row, clients, sqlite: [], nodes: [] })));
  const jobOf = (port: number, ca: string, clients: readonly JobClient[], warmUpCount: number) => ({
    ...{ port, ca, clients, warmUp: 1, warmUpCount, seconds },
  });
  const [row] = rows;
  if (row !== undefined) {
    const warm = { ...jobOf(fleet.server.port('est'), fleet.ca, row.clients(fleet), WARM_UP), seconds: 1 };
    await runJob(warm, folder, () => 'looked');
    const { estPort: port } = nodes.balancer;
    const theirs = jobOf(port, others.ca, row.clients(others), WARM_UP * nodes.all.length);
    await runJob({ ...theirs, seconds: 1 }, folder, () => 'looked');
  }
  for (let round = 0; round < rounds; round++)
    for (const one of round % 2 === 0 ? series : series.toReversed()) {
      const { server } = fleet;
      const clients = one.row.clients(fleet).slice(0, one.clients);
      const alone = await runJob(jobOf(server.port('est'), fleet.ca, clients, STILL_WARM), folder, () =>
        cpuSeconds(server.pid),
      );
      one.sqlite.push({ result: alone.result, cpu: 1000 * (alone.after - alone.before) });
      const theirs = one.row.clients(others).slice(0, one.clients);
      const job = jobOf(nodes.balancer.estPort, others.ca, theirs, STILL_WARM);
      const { result, before, after } = await runJob(job, folder, () => look(nodes));
      const costs = combine(await after, await before, (to, from) => to - from);
      one.nodes.push({ result, cpu: costs.servers, costs });
      console.error(`round ${round + 1}: ${one.row.name}, ${one.clients} clients`);
    }
  const idle = await idleCosts(nodes);
  console.log(report(series, idle));
}

/** In a second, with nothing to do. */
async function idleCosts(nodes: Nodes): Promise<Costs> {
  // Statistics of what was done last come late.
  await sleep(12_000);
  const [from, start] = [await look(nodes), performance.now()];
  await sleep(IDLE * 1000);
  const seconds = (performance.now() - start) / 1000;
  return combine(await look(nodes), from, (after, before) => (after - before) / seconds);
}

function report(series: readonly Series[], idle: Costs): string {
  const points = series.map((one) => ({ ...one, each: medianCosts(one, idle) }));
  const lines = points.map(({ row, clients, sqlite, nodes, each }) => {
    const of = (rounds: readonly Round[], value: (one: Round) => number, digits = 0): string =>
      median(rounds.map(value)).toFixed(digits);
    const perSecond = ({ result }: Round): number => result.latencies.length / result.elapsed;
    const p50 = ({ result }: Round): number => result.latencies[result.latencies.length >> 1] ?? NaN;
    const cpu = ({ result, cpu: all }: Round): number => all / result.latencies.length;
    const failures = [...sqlite, ...nodes].flatMap(({ result }) => Object.keys(result.failures));
    const cells = [
      ...[row.name, clients, of(sqlite, perSecond), of(nodes, perSecond), of(sqlite, p50, 1), of(nodes, p50, 1)],
      ...[of(sqlite, cpu, 2), each.servers.toFixed(2), each.database.toFixed(2)],
      ...[each.statements.toFixed(1), each.turns.toFixed(1), (each.octets / 1024).toFixed(1)],
      ...[each.commits.toFixed(2), each.transactions.toFixed(2), each.flushes.toFixed(2), (each.log / 1024).toFixed(1)],
      failures.join(', ') || 'none',
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| enrollments | clients | SQLite: per second | nodes: per second | SQLite: p50 ms | nodes: p50 ms | SQLite: CPU ms | nodes: CPU ms | PostgreSQL: CPU ms | statements | round trips | KiB on the wire | COMMITs | transactions | flushes | KiB of log | failures |',
    `|---${'|--:'.repeat(15)}|---|`,
    ...lines,
    '',
    `With nothing to do, a second: ${Object.entries(idle)
      .map(([name, value]) => `${name} ${Number(value).toFixed(1)}`)
      .join(', ')}`,
    ...(points.length < 2
      ? []
      : ['turns', 'octets', 'statements', 'servers', 'database', 'log'].map((name) => fitted(name, points))),
    `load at the end ${loadavg()[0]?.toFixed(0)}`,
  ].join('\n');
}

/** Of one enrollment, without what is done anyhow. */
function medianCosts({ nodes }: Series, idle: Costs): Costs {
  const each = nodes.flatMap(({ result, costs }) =>
    costs === undefined
      ? []
      : [combine(costs, idle, (all, second) => (all - second * result.elapsed) / result.latencies.length)],
  );
  const [first, ...others] = each;
  if (first === undefined) throw new Error('nothing was measured');
  const sorted = (of: (one: Costs) => number): number => median([first, ...others].map(of));
  return {
    servers: sorted((one) => one.servers),
    database: sorted((one) => one.database),
    statements: sorted((one) => one.statements),
    commits: sorted((one) => one.commits),
    transactions: sorted((one) => one.transactions),
    flushes: sorted((one) => one.flushes),
    log: sorted((one) => one.log),
    turns: sorted((one) => one.turns),
    octets: sorted((one) => one.octets),
  };
}

/** A quantity as what each enrollment takes, and what each COMMIT: least squares over all points. */
function fitted(name: string, points: readonly { readonly each: Costs }[]): string {
  const of = (costs: Costs): number => Number(Object.entries(costs).find(([one]) => one === name)?.[1]);
  const mean = (list: readonly number[]): number => list.reduce((all, one) => all + one, 0) / list.length;
  const [x, y] = [points.map(({ each }) => each.commits), points.map(({ each }) => of(each))];
  const [mx, my] = [mean(x), mean(y)];
  const slope = mean(x.map((one, n) => (one - mx) * ((y[n] ?? 0) - my))) / mean(x.map((one) => (one - mx) ** 2));
  return `${name} = ${(my - slope * mx).toFixed(2)} + ${slope.toFixed(2)} × COMMITs`;
}

await main();
