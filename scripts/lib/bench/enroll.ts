/** `scripts/bench`: how many enrollments the built server does, how long they take, and the CPU time they cost; beside it, other servers. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { besideRow, besideSyncs } from './beside.ts';
import { KEY_KINDS, type Fleet, type FleetOptions, type KeyKind, startFleet } from './fleet.ts';
import type { FloorMessage } from './floor.ts';
import { hasLibest, startLibest } from './libest.ts';
import type { Job } from './load.ts';
import { measure, type Measurement } from './measure.ts';
import { flameGraph, readProfile } from './profile.ts';
import { perCpuSecond, perSecond, plots, ratios, type Series, table } from './report.ts';
import { ROWS, type Row, type ServerName, USUAL_ROWS } from './rows.ts';

const HELP = `Usage: scripts/bench [--rounds N] [--seconds N] [--clients N,…] [--rows ROW,…] [--key KIND]
                     [--syncs] [--plots FOLDER] [--profile FOLDER]

  --rounds N         how often every row is measured, the servers in turns; medians count (default 3)
  --seconds N        seconds of each measuring (default 4, at most 60)
  --clients N,…      devices at a time, each with one request in flight (default 8, at most 64)
  --rows ROW,…       of ${ROWS.map(({ id }) => id).join(', ')}
                     (default ${USUAL_ROWS.join(', ')})
  --key KIND         the devices' keys: ${KEY_KINDS.join(' or ')} (default ${KEY_KINDS[0]})
  --syncs            beside a program that writes to the same disk and forces it there, all the time
  --plots FOLDER     the rows as SVG: what each server does per CPU second, and how long it takes, by the number of clients
  --profile FOLDER   of Estuary alone, once: a flame graph of each row's main thread and a table of where its time goes;
                     the profiler itself takes its share

libest's server takes part where scripts/fetch-estclient has fetched it.`;

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly clients: readonly number[];
  readonly rows: readonly Row[];
  readonly key: KeyKind;
  readonly syncs: boolean;
  readonly plots: string | undefined;
  readonly profile: string | undefined;
}

/** Enrollments before the first measuring of a server's row; later ones find it warm. */
const WARM_UP = 1500;
const STILL_WARM = 100;

/** A server that is measured. */
interface Target {
  /** Whose devices are its clients. */
  readonly fleet: Fleet;
  readonly port: number;
  readonly pid: number;
  stop(): unknown;
}

async function floorTarget(folder: string, fleet: Fleet): Promise<Target> {
  const child = fork(new URL('./floor.ts', import.meta.url), [folder], { stdio: 'inherit' });
  const message: unknown = (await once(child, 'message')).at(0);
  if (!isFloorMessage(message)) throw new Error('the floor did not start');
  return { fleet, port: message.port, pid: child.pid ?? 0, stop: () => child.kill() };
}

async function libestTarget(folder: string, fleet: Fleet): Promise<Target> {
  const { port, process: child } = await startLibest(folder);
  return { fleet, port, pid: child.pid ?? 0, stop: () => child.kill('SIGKILL') };
}

async function estuaryTarget(folder: string, options: FleetOptions): Promise<Target> {
  mkdirSync(folder);
  const fleet = await startFleet(folder, options);
  const { server } = fleet;
  return { fleet, port: server.port('est'), pid: server.pid, stop: () => server.stop() };
}

const isFloorMessage = (message: unknown): message is FloorMessage =>
  typeof message === 'object' && message !== null && 'port' in message && typeof message.port === 'number';

function wholeNumber(text: string, limit: number, option: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= limit) return value;
  return refuse(`--${option}: "${text}" is not a whole number from 1 to ${limit}`);
}

function refuse(problem: string): never {
  console.error(problem);
  process.exit(2);
}

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '4' },
      clients: { type: 'string', default: '8' },
      rows: { type: 'string', default: USUAL_ROWS.join(',') },
      key: { type: 'string', default: KEY_KINDS[0] },
      syncs: { type: 'boolean', default: false },
      plots: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const rows = values.rows
    .split(',')
    .map((id) => ROWS.find((row) => row.id === id) ?? refuse(`--rows: no row "${id}"`));
  return {
    rounds: values.profile === undefined ? wholeNumber(values.rounds, 100, 'rounds') : 1,
    seconds: wholeNumber(values.seconds, 60, 'seconds'),
    clients: values.clients.split(',').map((text) => wholeNumber(text, 64, 'clients')),
    rows,
    key:
      KEY_KINDS.find((kind) => kind === values.key) ??
      refuse(`--key: "${values.key}" is not ${KEY_KINDS.join(' or ')}`),
    syncs: values.syncs,
    plots: values.plots,
    profile: values.profile,
  };
}

async function main(): Promise<void> {
  const options = readOptions();
  if (options === undefined) {
    console.log(HELP);
    return;
  }
  const memory = Math.round(totalmem() / 2 ** 30);
  console.log(`Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'CPU'}, ${memory} GiB`);
  console.log(
    `Clients in a process of their own on the same machine; keys of devices ${options.key}, the others ${options.key === 'ml-dsa-65' ? 'too' : 'P-256'}; ${options.rounds} × ${options.seconds} s a row\n`,
  );
  if (!hasLibest()) console.error('without libest: scripts/fetch-estclient fetches it');
  const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-'));
  try {
    if (options.profile === undefined) await compare(folder, options);
    else await profile(folder, options, options.profile);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A fleet, and the job of one row with so many of its clients. */
function jobOf(row: Row, fleet: Fleet, clients: number, seconds: number): Omit<Job, 'port' | 'warmUpCount'> {
  return { clients: row.clients(fleet).slice(0, clients), ca: fleet.ca, warmUp: 1, seconds };
}

async function compare(folder: string, options: Options): Promise<void> {
  const series: Series[] = [];
  for (const hash of ['sha256-hmac', 'argon2id'] as const) {
    const rows = options.rows.filter((row) => row.hash === hash);
    if (rows.length === 0) continue;
    const own = join(folder, hash);
    const { key } = options;
    const fleetOptions = { hash, size: Math.max(...options.clients), key };
    const estuary = await estuaryTarget(own, fleetOptions);
    const targets = new Map<ServerName, Target>([['Estuary', estuary]]);
    const syncs = options.syncs ? besideSyncs(folder) : undefined;
    try {
      const wanted = new Set(rows.flatMap(({ servers }) => servers));
      if (wanted.has('the floor')) targets.set('the floor', await floorTarget(own, estuary.fleet));
      if (wanted.has('libest') && hasLibest()) targets.set('libest', await libestTarget(own, estuary.fleet));
      series.push(...(await compareRows(own, rows, targets, options)));
    } finally {
      syncs?.kill('SIGKILL');
      for (const target of targets.values()) await target.stop();
    }
  }
  console.log(`${table(series)}\n\n${ratios(series)}`);
  if (options.plots === undefined) return;
  mkdirSync(options.plots, { recursive: true });
  for (const [name, svg] of plots(series)) writeFileSync(join(options.plots, name), svg);
}

async function compareRows(
  folder: string,
  rows: readonly Row[],
  targets: ReadonlyMap<ServerName, Target>,
  { rounds, seconds, clients: counts }: Options,
): Promise<Series[]> {
  const series = rows.flatMap((row) =>
    counts.flatMap((clients) =>
      row.servers
        .filter((server) => targets.has(server))
        .map((server) => ({ row, clients, server, rounds: [] as Measurement[] })),
    ),
  );
  for (let round = 0; round < rounds; round++)
    // A row that goes by another's rate comes after it.
    for (const one of round % 2 === 0 ? series : [...series.toReversed()].sort(byRate)) {
      const { row, clients, server } = one;
      const target = targets.get(server);
      if (target === undefined) continue;
      const { fleet } = target;
      const crowd = await besideRow(row.beside, fleet, folder);
      // libest has nothing to warm up, and is slow.
      const warmUpCount = round === 0 && server !== 'libest' ? WARM_UP : STILL_WARM;
      const perSecond = rateOf(one, series);
      const job = { ...jobOf(row, fleet, clients, seconds), port: target.port, warmUpCount, perSecond };
      const isOurs = fleet.server.pid === target.pid;
      if (isOurs) await fleet.loopDelay();
      const measured = await measure(job, folder, target.pid);
      crowd?.kill('SIGKILL');
      one.rounds.push({ ...measured, loopDelay: isOurs ? await fleet.loopDelay() : undefined });
      console.error(
        `round ${round + 1}: ${row.name}, ${clients} clients, ${server}: ${perCpuSecond(measured).toFixed(0)} per CPU second`,
      );
    }
  return series;
}

const byRate = (a: Series, b: Series): number =>
  Number(typeof a.row.rate === 'object') - Number(typeof b.row.rate === 'object');

/** Of a row that has one; where it goes by another's, by what that one did last. */
function rateOf({ row: { rate }, clients }: Series, series: readonly Series[]): number | undefined {
  if (typeof rate !== 'object') return rate;
  const other = series.find(({ row, clients: same }) => row.id === rate.of && same === clients)?.rounds.at(-1);
  if (other === undefined) return refuse(`--rows: give ${rate.of} before what goes by it`);
  return perSecond(other) * rate.share;
}

async function profile(folder: string, options: Options, target: string): Promise<void> {
  mkdirSync(target, { recursive: true });
  const size = options.clients[0] ?? 1;
  for (const row of options.rows) {
    const own = join(folder, row.id);
    const profiles = join(own, 'profiles');
    mkdirSync(profiles, { recursive: true });
    const env = { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profiles} --cpu-prof-interval=500` };
    const fleet = await startFleet(own, { hash: row.hash, size, key: options.key, env });
    let measured: Measurement;
    try {
      const job = { ...jobOf(row, fleet, size, options.seconds), port: fleet.server.port('est'), warmUpCount: WARM_UP };
      measured = await measure(job, own, fleet.server.pid);
    } finally {
      await fleet.server.stop();
    }
    const found = readProfile(profiles, measured.window);
    const file = join(target, `${row.id}.svg`);
    writeFileSync(file, flameGraph(found, `${row.name}: main thread, JavaScript`));
    const count = measured.result.latencies.length;
    const each = (microseconds: number): string => (microseconds / count).toFixed(0);
    console.log(`\n${row.name}: ${file}\n\n| CPU of the thread | µs each |\n|---|--:|`);
    for (const [name, seconds] of measured.threads)
      if (seconds > 0) console.log(`| ${name.replace(/^\d+ /, '')} | ${each(seconds * 1e6)} |`);
    console.log('\n| main thread, by whose function | µs each |\n|---|--:|');
    for (const [part, time] of found.parts) console.log(`| ${part} | ${each(time)} |`);
  }
}

await main();
