/**
 * `scripts/bench overload`: what the built server does with more requests than it can process. First clients that wait for their
 * responses find out how many that is. Then several times as many are sent at a fixed rate, while /healthz is requested on new
 * connections. Loopback only; the clients run on the same cores.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Estuary } from '../../../test/support/estuary.ts';
import { call } from '../../../test/support/https.ts';
import { clientsOf, Load } from './fleet.ts';
import { quantile, residentMiB } from './measure.ts';
import { wholeNumber } from './options.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    times: { type: 'string', default: '3' },
    connections: { type: 'string', default: '600' },
  },
});
const CLIENTS = 8;
/** Milliseconds between two requests for /healthz. */
const LOOK = 250;

/** Requests /healthz and reads the memory of the server until it is aborted. */
async function watch({ server, root: ca }: Estuary, ended: AbortSignal) {
  const seen = { healthz: [] as number[], failed: [] as string[], memory: [] as number[] };
  while (!ended.aborted) {
    const start = performance.now();
    const answer = await call({ port: server.port('admin'), path: '/healthz', tls: { ca } }).then(
      ({ status }) => String(status),
      (error: unknown) => String(error),
    );
    if (answer === '200') seen.healthz.push(performance.now() - start);
    else seen.failed.push(`/healthz: ${answer}`);
    seen.memory.push(residentMiB(server.pid));
    await sleep(LOOK);
  }
  return seen;
}

function row(what: string, times: readonly number[], seconds: number): string {
  const cells = [times.length / seconds, ...[0.5, 0.95, 1].map((share) => quantile(times, share))];
  return `| ${what} | ${cells.map((cell) => cell.toFixed(0)).join(' | ')} |`;
}

async function main(): Promise<void> {
  const seconds = wholeNumber(values.seconds, 600, 'seconds');
  const times = wholeNumber(values.times, 10, 'times');
  const connections = wholeNumber(values.connections, 1000, 'connections');
  const estuary = await Estuary.start({ env: { NODE_ENV: 'production' } });
  try {
    const { server, root: ca } = estuary;
    const { mtls: clients } = await clientsOf(estuary, CLIENTS);
    const job = {
      port: server.port('est'),
      pid: server.pid,
      ca,
      clients,
      connection: 'kept',
      operation: 'simpleenroll',
    } as const;
    const load = await Load.start({ ...job, warmUp: 500 });
    const { answers, elapsed } = await load.slice(seconds);
    await load.stop();
    const possible = answers['200'] ?? [];
    const before = residentMiB(server.pid);
    const ended = new AbortController();
    const many = Array.from({ length: connections }, (_, n) => clients.slice(n % CLIENTS, (n % CLIENTS) + 1)).flat();
    const rate = Math.ceil((times * possible.length) / elapsed);
    const overload = await Load.start({ ...job, clients: many, warmUp: 0, fixed: { rate, seconds } });
    const watching = watch(estuary, ended.signal);
    const seen = await overload.result();
    ended.abort();
    const { healthz, failed, memory } = await watching;
    await overload.stop();
    const { 200: served = [], 503: rejected = [], ...others } = seen.answers;
    const lines = [
      '| | per second | p50 ms | p95 ms | longest ms |\n|---|--:|--:|--:|--:|',
      row(`${CLIENTS} clients that wait for their responses`, possible, elapsed),
      row(`${times} times as many: served (200)`, served, seen.elapsed),
      row('rejected (503)', rejected, seen.elapsed),
      row('/healthz, on new connections', healthz, seen.elapsed),
      `\nMemory: ${before.toFixed(0)} MiB before, ${quantile(memory, 1).toFixed(0)} at most. No connection was free for ${seen.unsent} requests.`,
      ...Object.entries(others).map(([answer, all]) => `${all.length} times: ${answer}`),
      ...failed,
    ];
    console.log(lines.join('\n'));
    if (Object.keys(others).length + failed.length > 0) process.exitCode = 1;
  } finally {
    await estuary.stop();
  }
}

await main();
