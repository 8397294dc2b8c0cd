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
import { clientsOf, type Fleet, runLoad } from './fleet.ts';
import type { Result } from './load.ts';
import { median, quantile } from './measure.ts';
import { oneOf, wholeNumber } from './options.ts';

const ROWS = {
  kept: { name: 'kept connection, mTLS', connection: 'kept', password: false },
  new: { name: 'new connection, mTLS', connection: 'new', password: false },
  'kept-otp': { name: 'kept connection, OTP (sha256-hmac)', connection: 'kept', password: true },
  'new-otp': { name: 'new connection, OTP (sha256-hmac)', connection: 'new', password: true },
} as const;
const ROW_IDS = ['kept', 'new', 'kept-otp', 'new-otp'] as const;
type RowId = (typeof ROW_IDS)[number];
const SERVERS = ['sqlite', 'postgres', 'other', 'durable', 'bare'] as const;
type ServerId = (typeof SERVERS)[number];

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    clients: { type: 'string', default: '8,32' },
    rows: { type: 'string', default: 'kept,new,kept-otp' },
    servers: { type: 'string', default: 'sqlite,durable,bare' },
    other: { type: 'string' },
  },
});

/** Enrollments of each server that are not measured. */
const [COLD, WARM] = [1500, 50];
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
}

async function estuaryTarget(
  size: number,
  { cluster, ...program }: Backend = {},
): Promise<Target & { readonly dir: string }> {
  const options = { ...program, env: { NODE_ENV: 'production' } };
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

async function measure(one: Series, target: Target, seconds: number, warmUp: number): Promise<void> {
  const { port, pid, ca, fleet } = target;
  const { connection, password } = ROWS[one.row];
  const clients = (password ? fleet.otp : fleet.mtls).slice(0, one.clients);
  one.rounds.push(await runLoad({ port, pid, ca, clients, connection, warmUp, seconds }));
}

function table(series: readonly Series[]): string {
  const lines = series.map(({ row, clients, server, rounds }) => {
    const floor = series.find((one) => one.server === 'durable' && one.row === row && one.clients === clients);
    const ratios = rounds.map((round, n) => perCpuSecond(round) / perCpuSecond(floor?.rounds[n] ?? round));
    const of = (value: (one: Result) => number, digits = 0): string => median(rounds.map(value)).toFixed(digits);
    const failed = new Set(rounds.flatMap(({ answers }) => Object.keys(answers).filter((what) => what !== '200')));
    const cells = [
      ...[ROWS[row].name, clients, server],
      ...[of((one) => served(one) / one.elapsed), of(perCpuSecond), of((one) => 1e6 / perCpuSecond(one))],
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
  const rounds = wholeNumber(values.rounds, 100, 'rounds');
  const seconds = wholeNumber(values.seconds, 600, 'seconds');
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
    if (values.other !== undefined) targets.set('other', await estuaryTarget(size, { program: values.other }));
    for (const kind of ['bare', 'durable'] as const)
      if (wanted.includes(kind)) targets.set(kind, await floorTarget(kind, sqlite));
    const series = rows.flatMap((row) =>
      counts.flatMap((clients) => wanted.map((server) => ({ row, clients, server, rounds: [] }) satisfies Series)),
    );
    for (let round = 0; round < rounds; round++)
      for (const one of round % 2 === 0 ? series : series.toReversed()) {
        const target = targets.get(one.server);
        if (target !== undefined) await measure(one, target, seconds, round === 0 ? COLD : WARM);
      }
    console.log(`${rounds} × ${seconds} s, load ${load()}\n\n${table(series)}`);
  } finally {
    for (const target of targets.values()) await target.stop();
    await cluster?.stop();
  }
}

await main();
