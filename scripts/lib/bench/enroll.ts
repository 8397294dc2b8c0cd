/** `scripts/bench`: enrollments per CPU second of the built server, compared with two floors (floor.ts). */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Estuary } from '../../../test/support/estuary.ts';
import { PostgresCluster } from '../../../test/support/postgres.ts';
import { withStoreIn } from '../../../test/support/store-in-postgres.ts';
import { clientsOf, type Fleet, Load } from './fleet.ts';
import type { Result } from './load.ts';
import { median, quantile } from './measure.ts';
import { oneOf, wholeNumber } from './options.ts';

const ROWS = {
  kept: { name: 'kept connection, mTLS', connection: 'kept', clients: 'mtls', operation: 'simpleenroll' },
  new: { name: 'new connection, mTLS', connection: 'new', clients: 'mtls', operation: 'simpleenroll' },
  renewal: { name: 'kept connection, renewal', connection: 'kept', clients: 'mtls', operation: 'simplereenroll' },
  'kept-otp': { name: 'kept connection, OTP', connection: 'kept', clients: 'otp', operation: 'simpleenroll' },
  'new-otp': { name: 'new connection, OTP', connection: 'new', clients: 'otp', operation: 'simpleenroll' },
} as const;
const ROW_IDS = ['kept', 'new', 'renewal', 'kept-otp', 'new-otp'] as const;
type RowId = (typeof ROW_IDS)[number];
const SERVERS = ['sqlite', 'postgres', 'other', 'durable', 'bare'] as const;
type ServerId = (typeof SERVERS)[number];

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '14' },
    seconds: { type: 'string', default: '0.8' },
    'warm-up': { type: 'string', default: '6000' },
    clients: { type: 'string', default: '8,32' },
    rows: { type: 'string', default: 'kept,new,renewal,kept-otp' },
    servers: { type: 'string', default: 'sqlite,durable,bare' },
    other: { type: 'string' },
    filled: { type: 'string' },
  },
});

const rounds = wholeNumber(values.rounds, 100, 'rounds');
const seconds = Number(values.seconds);
const warmUp = wholeNumber(values['warm-up'], 1_000_000, 'warm-up');
/** Enrollments before each further row, which are not measured. */
const WARM = 200;
interface Target {
  readonly port: number;
  readonly pid: number;
  /** PEM of the CA of its certificate. */
  readonly ca: string;
  readonly fleet: Fleet;
  stop(): Promise<unknown>;
}

interface Backend {
  /** Where the store is, in place of a file. */
  readonly cluster?: PostgresCluster;
  /** The program, in place of `dist`. */
  readonly program?: string;
  /** The folder with the store that it begins with. */
  readonly filled?: string;
}

async function estuaryTarget(
  size: number,
  { cluster, program, filled }: Backend = {},
): Promise<Target & { readonly dir: string }> {
  const options = {
    ...(program !== undefined && { program }),
    ...(filled !== undefined && {
      configure: (_config: unknown, dir: string) => cpSync(filled, join(dir, 'data'), { recursive: true }),
    }),
    env: { NODE_ENV: 'production' },
  };
  const stored = cluster === undefined ? options : withStoreIn(options, await cluster.createDatabase(), 'bench');
  const estuary = await Estuary.start(stored);
  const { server, root: ca, dir } = estuary;
  const fleet = await clientsOf(estuary, size);
  return { port: server.port('est'), pid: server.pid, ca, fleet, dir, stop: () => estuary.stop() };
}

/** @param like whose PKI and clients it has */
async function floorTarget(kind: 'bare' | 'durable', like: Target & { readonly dir: string }): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-'));
  cpSync(like.dir, folder, { recursive: true, filter: (path) => !path.endsWith('/data') });
  const child = fork(new URL('./floor.ts', import.meta.url), [kind, folder], { stdio: 'inherit' });
  const address: unknown = (await once(child, 'message')).at(0);
  if (typeof address !== 'object' || address === null || !('port' in address) || typeof address.port !== 'number')
    throw new Error('the floor did not start');
  return {
    ...like,
    port: address.port,
    pid: child.pid ?? 0,
    async stop() {
      if (child.kill()) await once(child, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Series {
  readonly row: RowId;
  readonly clients: number;
  readonly server: ServerId;
  readonly rounds: Result[];
}

const served = ({ answers }: Result): number => answers['200']?.length ?? 0;
const perCpuSecond = (result: Result): number => served(result) / result.cpu;

function start({ row, clients: size }: Series, { port, pid, ca, fleet }: Target, warmUp: number): Promise<Load> {
  const { connection, clients, operation } = ROWS[row];
  return Load.start({ port, pid, ca, clients: fleet[clients].slice(0, size), connection, operation, warmUp });
}

/** Measures the series of one row, the servers in turn. */
async function measure(all: readonly Series[], targets: ReadonlyMap<ServerId, Target>, warmUp: number): Promise<void> {
  const running: { readonly one: Series; readonly load: Load }[] = [];
  try {
    for (const one of all) {
      const target = targets.get(one.server);
      if (target !== undefined) running.push({ one, load: await start(one, target, warmUp) });
    }
    for (let round = 0; round < rounds; round++)
      for (const { one, load } of round % 2 === 0 ? running : running.toReversed())
        one.rounds.push(await load.slice(seconds));
  } finally {
    for (const { load } of running) await load.stop();
  }
}

function table(series: readonly Series[]): string {
  const lines = series.map(({ row, clients, server, rounds }) => {
    const floor = series.find((one) => one.server === 'durable' && one.row === row && one.clients === clients);
    const ratios = rounds.map((round, n) => perCpuSecond(round) / perCpuSecond(floor?.rounds[n] ?? round));
    const of = (value: (one: Result) => number, digits = 0): string => median(rounds.map(value)).toFixed(digits);
    const failed = new Set(rounds.flatMap(({ answers }) => Object.keys(answers).filter((what) => what !== '200')));
    const cells = [
      ...[ROWS[row].name, clients, server],
      ...[
        of((result) => served(result) / result.elapsed),
        of(perCpuSecond),
        of((result) => 1e6 / perCpuSecond(result)),
      ],
      ...[0.5, 0.99].map((share) => of(({ answers }) => quantile(answers['200'] ?? [], share), 1)),
      floor === undefined ? '' : median(ratios).toFixed(2),
      ...(failed.size === 0 ? [] : [`failed: ${[...failed].join(', ')}`]),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const head = '| enrollments | clients | server | per second | per CPU second | CPU µs | p50 ms | p99 ms | ratio |';
  return [head, '|---|--:|---|--:|--:|--:|--:|--:|--:|', ...lines].join('\n');
}

async function main(): Promise<void> {
  const list = (option: 'clients' | 'rows' | 'servers'): readonly string[] => values[option].split(',');
  const counts = list('clients').map((text) => wholeNumber(text, 256, 'clients'));
  const rows = list('rows').map((text) => oneOf(ROW_IDS, text, 'rows'));
  const wanted = list('servers').map((text) => oneOf(SERVERS, text, 'servers'));
  const load = (): string => loadavg().map((one) => one.toFixed(1)).join(' '); // prettier-ignore
  console.log(`Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'CPU'}, load ${load()}`);
  const size = Math.max(...counts);
  const targets = new Map<ServerId, Target>();
  const cluster = wanted.includes('postgres') ? await PostgresCluster.start({ durable: true }) : undefined;
  try {
    const sqlite = await estuaryTarget(size);
    targets.set('sqlite', sqlite);
    if (cluster !== undefined) targets.set('postgres', await estuaryTarget(size, { cluster }));
    const { other: program, filled } = values;
    if (program !== undefined || filled !== undefined)
      targets.set('other', await estuaryTarget(size, { ...(program && { program }), ...(filled && { filled }) }));
    for (const kind of ['bare', 'durable'] as const)
      if (wanted.includes(kind)) targets.set(kind, await floorTarget(kind, sqlite));
    const series: Series[] = [];
    for (const row of rows)
      for (const clients of counts) {
        const first = series.length === 0;
        const all = wanted.map((server) => ({ row, clients, server, rounds: [] }) satisfies Series);
        await measure(all, targets, first ? warmUp : WARM);
        series.push(...all);
      }
    console.log(`${rounds} × ${seconds} s, load ${load()}\n\n${table(series)}`);
  } finally {
    for (const target of targets.values()) await target.stop();
    await cluster?.stop();
  }
}

await main();
