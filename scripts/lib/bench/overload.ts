/**
 * `scripts/bench-overload [--seconds N] [--times N] [--connections N]`: what the built server does with more than it can bear.
 *
 * First renewals over kept connections, each client waiting for its answer: what it can bear. Then so many times that, sent at that rate whatever comes
 * back, while /healthz is asked on a new connection each time and the memory of the server's processes is looked at. Loopback only; the clients run on the same cores.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { call } from '../../../test/support/https.ts';
import { residentMiB } from './cpu.ts';
import { startFleet, type Fleet } from './fleet.ts';
import { measure } from './measure.ts';
import type { Seen, Storm, StormMessage } from './storm.ts';

const HELP = `scripts/bench-overload [--seconds 10] [--times 3] [--connections 600]

  --seconds N       of each of the two parts (at most 60)
  --times N         what is sent, in what the server can bear (at most 10)
  --connections N   kept ones that it is sent over (at most 1000)`;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    times: { type: 'string', default: '3' },
    connections: { type: 'string', default: '600' },
    help: { type: 'boolean', default: false },
  },
});

const DEVICES = 8;
const WARM_UP = 500;
/** Milliseconds between two looks at /healthz and the memory. */
const LOOK = 250;

function wholeNumber(option: 'seconds' | 'times' | 'connections', limit: number): number {
  const value = Number(values[option]);
  if (Number.isInteger(value) && value >= 1 && value <= limit) return value;
  console.error(`--${option}: "${values[option]}" is not a whole number from 1 to ${limit}`);
  return process.exit(2);
}

/** Looks at the server until it is told to end. */
class Watch {
  readonly healthz: number[] = [];
  /** What else came of them. */
  readonly failed: string[] = [];
  readonly memory: number[] = [];
  #ended = false;
  readonly #done: Promise<void>;

  constructor(fleet: Fleet) {
    this.#done = this.#look(fleet);
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#done;
  }

  async #look({ server, ca: file }: Fleet): Promise<void> {
    const ca = readFileSync(file, 'utf8');
    while (!this.#ended) {
      const start = performance.now();
      const answer = await call({ port: server.port('admin'), path: '/healthz', tls: { ca } }).then(
        ({ status }) => String(status),
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      if (answer === '200') this.healthz.push(performance.now() - start);
      else this.failed.push(`/healthz: ${answer}`);
      this.memory.push(residentMiB(server.pid));
      await sleep(LOOK);
    }
  }
}

/** Runs a storm in a process of its own. @param onReady when its connections are open */
function runStorm(storm: Storm, folder: string, onReady: () => void): Promise<Seen> {
  const file = join(folder, 'storm.json');
  writeFileSync(file, JSON.stringify(storm));
  const child = fork(new URL('./storm.ts', import.meta.url), [file], { stdio: 'inherit' });
  const timer = setTimeout(() => child.kill('SIGKILL'), (storm.seconds + 180) * 1000);
  return new Promise((resolve, reject) => {
    child.on('message', (message: StormMessage) => {
      if (message.type === 'ready') onReady();
      else resolve(message.seen);
    });
    child.on('exit', () => {
      clearTimeout(timer);
      reject(new Error('the storm died'));
    });
  });
}

const quantile = (sorted: readonly number[], share: number): string =>
  sorted.length === 0 ? '' : (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(0);

function row(what: string, times: readonly number[], seconds: number): string {
  const sorted = times.toSorted((a, b) => a - b);
  const columns = [(times.length / seconds).toFixed(0), ...[0.5, 0.95, 1].map((share) => quantile(sorted, share))];
  return `| ${what} | ${columns.join(' | ')} |`;
}

async function main(folder: string): Promise<void> {
  const [seconds, times, connections] = [
    wholeNumber('seconds', 60),
    wholeNumber('times', 10),
    wholeNumber('connections', 1000),
  ];
  const fleet = await startFleet(folder, { hash: 'sha256-hmac', size: DEVICES, key: 'p-256' });
  try {
    const { devices, ca, server } = fleet;
    const port = server.port('est');
    const clients = devices.map((device) => ({ ...device, operation: 'simplereenroll', connection: 'kept' }) as const);
    const { result } = await measure(
      { port, ca, clients, warmUp: 1, warmUpCount: WARM_UP, seconds },
      folder,
      server.pid,
    );
    const bearable = result.latencies.length / result.elapsed;
    const before = residentMiB(server.pid);
    let watch: Watch | undefined;
    const storm = { port, ca, devices, connections, rate: Math.ceil(times * bearable), seconds };
    const seen = await runStorm(storm, folder, () => (watch = new Watch(fleet)));
    await watch?.end();
    const { healthz = [], memory = [], failed = [] } = watch ?? {};
    const after = residentMiB(server.pid);
    const { 200: served = [], 503: refused = [], ...others } = seen.answers;
    console.log('| | per second | p50 ms | p95 ms | longest ms |\n|---|--:|--:|--:|--:|');
    console.log(row('what it can bear: 8 clients, served', result.latencies, result.elapsed));
    console.log(`| then sent, ${times} times as much | ${(seen.sent / seen.elapsed).toFixed(0)} | | | |`);
    console.log(row('of these served (200)', served, seen.answered));
    console.log(row('of these refused (503)', refused, seen.answered));
    console.log(row('/healthz meanwhile, on new connections', healthz, seen.answered));
    console.log(
      `\nmemory: ${before.toFixed(0)} MiB before, ${Math.max(...memory).toFixed(0)} at most, ${after.toFixed(0)} after; ` +
        `${seen.unsent} requests were not sent, because no connection was free`,
    );
    for (const [answer, all] of Object.entries(others)) console.log(`${all.length} times: ${answer}`);
    for (const answer of failed) console.log(answer);
    if (Object.keys(others).length + failed.length > 0) process.exitCode = 1;
  } finally {
    await fleet.server.stop();
  }
}

if (values.help) {
  console.log(HELP);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-overload-'));
  try {
    await main(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
