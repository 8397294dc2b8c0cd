/** `scripts/bench`: how many enrolments the built server does, how long they take, and the CPU time they cost. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cpuSeconds } from './cpu.ts';
import { type Fleet, type HashAlgorithm, startFleet } from './fleet.ts';
import type { FloorMessage } from './floor.ts';
import type { Job, LoadMessage, Result } from './load.ts';

const HELP = `Usage: scripts/bench [--seconds N] [--clients N]

  --seconds N   seconds of measuring for each row (default 10, at most 60)
  --clients N   devices at a time, each with one request in flight (default 8, at most 64)`;

interface Row {
  readonly name: string;
  readonly hash: HashAlgorithm;
  /** Whether a crowd of slow clients is on every listener meanwhile. */
  readonly besideSlow?: boolean;
  /** Whether the floor (floor.ts) is measured with the same clients right after it. */
  readonly besideFloor?: boolean;
  readonly job: (fleet: Fleet) => Pick<Job, 'operation' | 'clients' | 'keepAlive'>;
}

const ROWS: readonly Row[] = [
  {
    name: 'new connection, mTLS, simplereenroll',
    hash: 'sha256-hmac',
    besideFloor: true,
    job: ({ devices }) => ({ operation: 'simplereenroll', clients: devices, keepAlive: false }),
  },
  {
    name: 'new connection, OTP (sha256-hmac), simpleenroll',
    hash: 'sha256-hmac',
    job: ({ newcomers }) => ({ operation: 'simpleenroll', clients: newcomers, keepAlive: false }),
  },
  {
    name: 'keep-alive, mTLS, simplereenroll',
    hash: 'sha256-hmac',
    besideFloor: true,
    job: ({ devices }) => ({ operation: 'simplereenroll', clients: devices, keepAlive: true }),
  },
  {
    name: 'keep-alive, mTLS, simplereenroll, beside slow clients',
    hash: 'sha256-hmac',
    besideSlow: true,
    job: ({ devices }) => ({ operation: 'simplereenroll', clients: devices, keepAlive: true }),
  },
  {
    name: 'new connection, mTLS, simplereenroll, beside slow clients',
    hash: 'sha256-hmac',
    besideSlow: true,
    job: ({ devices }) => ({ operation: 'simplereenroll', clients: devices, keepAlive: false }),
  },
  {
    name: 'keep-alive, OTP (sha256-hmac), simpleenroll',
    hash: 'sha256-hmac',
    job: ({ newcomers }) => ({ operation: 'simpleenroll', clients: newcomers, keepAlive: true }),
  },
  {
    name: 'new connection, OTP (argon2id), simpleenroll',
    hash: 'argon2id',
    job: ({ newcomers }) => ({ operation: 'simpleenroll', clients: newcomers, keepAlive: false }),
  },
];

interface Measurement {
  readonly result: Result;
  /** Seconds of CPU that the server used while measuring. */
  readonly cpu: number;
}

/** Runs one job in a process of its own and watches the server's CPU time meanwhile. */
function measure(job: Job, folder: string, serverPid: number): Promise<Measurement> {
  const file = join(folder, 'job.json');
  writeFileSync(file, JSON.stringify(job));
  const child = fork(new URL('./load.ts', import.meta.url), [file], { stdio: 'inherit' });
  const timer = setTimeout(() => child.kill('SIGKILL'), (job.warmUp + job.seconds + 30) * 1000);
  return new Promise((resolve, reject) => {
    let before = 0;
    let measurement: Measurement | undefined;
    child.on('message', (message: LoadMessage) => {
      if (message.type === 'measuring') before = cpuSeconds(serverPid);
      else measurement = { result: message.result, cpu: cpuSeconds(serverPid) - before };
    });
    child.on('exit', () => {
      clearTimeout(timer);
      if (measurement === undefined) reject(new Error('the load generator died'));
      else resolve(measurement);
    });
  });
}

/** Slow clients on every listener, from an address of their own; resolves when all are there. */
async function slowCrowd(fleet: Fleet): Promise<ChildProcess> {
  const ca = readFileSync(fleet.ca, 'utf8');
  const places = (['est', 'admin', 'publication'] as const).map((listener) => ({
    listener,
    port: fleet.server.port(listener),
    ca,
    localAddress: '127.0.0.2',
  }));
  const child = fork(new URL('./slow.ts', import.meta.url), [JSON.stringify(places)], { stdio: 'inherit' });
  await once(child, 'message');
  return child;
}

interface Floor {
  readonly port: number;
  readonly process: ChildProcess;
}

/** The bare server, on the same PKI. */
async function startFloor(folder: string): Promise<Floor> {
  const child = fork(new URL('./floor.ts', import.meta.url), [folder], { stdio: 'inherit' });
  const message: unknown = (await once(child, 'message')).at(0);
  if (!isFloorMessage(message)) throw new Error('the floor did not start');
  return { port: message.port, process: child };
}

const isFloorMessage = (message: unknown): message is FloorMessage =>
  typeof message === 'object' && message !== null && 'port' in message && typeof message.port === 'number';

const perCpuSecond = ({ result, cpu }: Measurement): number => result.latencies.length / cpu;

function percentile(sorted: readonly number[], share: number): string {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return value === undefined ? '–' : value.toFixed(1);
}

function format(name: string, { result, cpu }: Measurement): string {
  const done = result.latencies.length;
  const cells = [
    name,
    (done / result.elapsed).toFixed(0),
    cpu > 0 ? (done / cpu).toFixed(0) : '–',
    `${((100 * cpu) / result.elapsed).toFixed(0)} %`,
    ...[0.5, 0.95, 0.99].map((share) => percentile(result.latencies, share)),
    Object.entries(result.failures)
      .map(([what, count]) => `${count} × ${what}`)
      .join(', ') || 'none',
  ];
  return `| ${cells.join(' | ')} |`;
}

function atMost(text: string, limit: number, option: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= limit) return value;
  console.error(`--${option}: "${text}" is not a whole number from 1 to ${limit}`);
  process.exit(2);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '10' },
      clients: { type: 'string', default: '8' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const seconds = atMost(values.seconds, 60, 'seconds');
  const clients = atMost(values.clients, 64, 'clients');
  const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-'));
  try {
    await bench(folder, seconds, clients);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function bench(folder: string, seconds: number, clients: number): Promise<void> {
  const memory = Math.round(totalmem() / 2 ** 30);
  console.log(`Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'CPU'}, ${memory} GiB`);
  console.log(
    `${clients} clients in a process of their own on the same machine, P-256 everywhere, ${seconds} s a row\n`,
  );
  console.log('| enrolments | per second | per CPU second | server CPU | p50 ms | p95 ms | p99 ms | failures |');
  console.log('|---|--:|--:|--:|--:|--:|--:|---|');
  for (const hash of ['sha256-hmac', 'argon2id'] as const) {
    const own = join(folder, hash);
    mkdirSync(own);
    const fleet = await startFleet(own, hash, clients);
    const floor = await startFloor(own);
    const ratios: string[] = [];
    try {
      for (const row of ROWS.filter((candidate) => candidate.hash === hash)) {
        const job = { port: fleet.server.port('est'), ca: fleet.ca, warmUp: 2, seconds, ...row.job(fleet) };
        const crowd = row.besideSlow === true ? await slowCrowd(fleet) : undefined;
        const measured = await measure(job, own, fleet.server.pid);
        console.log(format(row.name, measured));
        crowd?.kill('SIGKILL');
        if (row.besideFloor !== true) continue;
        const least = await measure({ ...job, port: floor.port }, own, floor.process.pid ?? 0);
        console.log(
          format(`the floor: ${row.name.split(',', 1)[0] ?? ''}, mTLS, one signature verified and one made`, least),
        );
        ratios.push(`${row.name}: ${((100 * perCpuSecond(measured)) / perCpuSecond(least)).toFixed(0)} %`);
      }
      if (ratios.length > 0) console.log(`\nper CPU second, of the floor: ${ratios.join('; ')}`);
    } finally {
      floor.process.kill();
      await fleet.server.stop();
    }
  }
}

await main();
