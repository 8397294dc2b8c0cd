/** `scripts/bench-gssapi`: Negotiate enrollments per second, and the CPU time and memory of the Kerberos child process. */
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { makeKey, simpleCsr } from '../../../test/support/csr.ts';
import { Gssproxy } from '../../../test/support/gssproxy.ts';
import { Kdc } from '../../../test/support/kdc.ts';
import { initialTokens } from '../../../test/support/negotiate.ts';
import { NegotiateServer } from '../../../test/support/negotiate-server.ts';
import { cpuSeconds } from './cpu.ts';
import { enrollRequest, exchange, open, type Target } from './http.ts';

const HELP = `Usage: scripts/bench-gssapi [--enrollments N] [--clients N]

  --enrollments N   enrollments for each row (default 1000)
  --clients N      requests in flight (default 8)`;

const TEMPLATE = 'default_template = "CN={principal}"';

interface Setting {
  readonly kdc: Kdc;
  readonly cache: string;
  readonly enrollments: number;
  readonly clients: number;
}

/** Every token works once, so all are made before the clock starts. */
async function makeRequests({ kdc, cache, enrollments }: Setting): Promise<Buffer[]> {
  const csr = simpleCsr(makeKey(), 'bench');
  const tokens = await initialTokens({ env: kdc.env, cache }, enrollments);
  return tokens.map((token) => enrollRequest('simpleenroll', csr, `Negotiate ${token}`));
}

/** Sends all requests and returns their latencies in milliseconds, sorted. */
async function load(target: Target, requests: Buffer[], clients: number, keepAlive: boolean): Promise<number[]> {
  const latencies: number[] = [];
  const client = async (): Promise<void> => {
    let socket: TLSSocket | undefined;
    for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
      const started = performance.now();
      socket ??= await open(target);
      const { status, body } = await exchange(socket, request);
      if (status !== 200) throw new Error(`${status} ${body}`);
      latencies.push(performance.now() - started);
      if (keepAlive) continue;
      socket.destroy();
      socket = undefined;
    }
    socket?.destroy();
  };
  await Promise.all(Array.from({ length: clients }, client));
  return latencies.sort((a, b) => a - b);
}

function residentMiB(pid: number): string {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return kib === undefined ? '–' : (Number(kib) / 1024).toFixed(0);
}

async function measure(name: string, server: NegotiateServer, setting: Setting, keepAlive: boolean): Promise<string> {
  const { pid } = server.quickstart.server;
  const [child] = await server.children();
  if (child === undefined) throw new Error('the server has no Kerberos process');
  const target = { port: server.quickstart.server.port('est'), context: createSecureContext({ ca: [server.ca] }) };
  await load(target, await makeRequests({ ...setting, enrollments: 100 }), setting.clients, keepAlive);
  const requests = await makeRequests(setting);
  const [cpuBefore, childBefore, started] = [cpuSeconds(pid), cpuSeconds(child), performance.now()];
  const latencies = await load(target, requests, setting.clients, keepAlive);
  const seconds = (performance.now() - started) / 1000;
  const [cpu, childCpu] = [cpuSeconds(pid) - cpuBefore, cpuSeconds(child) - childBefore];
  const percentile = (share: number): string => (latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(1);
  const cells = [
    name,
    (latencies.length / seconds).toFixed(0),
    (latencies.length / cpu).toFixed(0),
    ((1000 * childCpu) / latencies.length).toFixed(2),
    residentMiB(child),
    ...[0.5, 0.95, 0.99].map(percentile),
  ];
  return `| ${cells.join(' | ')} |`;
}

async function bench(enrollments: number, clients: number): Promise<void> {
  const kdc = await Kdc.start();
  const stops = [async () => await kdc.stop()];
  try {
    await kdc.addUser('alice');
    const setting = { kdc, cache: await kdc.login('alice'), enrollments, clients };
    const proxy = await Gssproxy.start(kdc);
    stops.unshift(async () => await proxy.stop());
    const keytab = await NegotiateServer.start({ kdc, gssapi: `keytab = "${kdc.keytab}"\n${TEMPLATE}` });
    stops.unshift(async () => await keytab.stop());
    const env = { GSSPROXY_SOCKET: proxy.socket };
    const proxied = await NegotiateServer.start({ kdc, gssapi: `gssproxy = true\n${TEMPLATE}`, env });
    stops.unshift(async () => await proxied.stop());
    console.log(`Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'CPU'}`);
    console.log(`${clients} clients on the same machine, P-256, ${enrollments} enrollments a row\n`);
    console.log(
      '| enrollments | per second | per CPU second | child CPU ms each | child MiB | p50 ms | p95 ms | p99 ms |',
    );
    console.log('|---|--:|--:|--:|--:|--:|--:|--:|');
    console.log(await measure('keytab, keep-alive', keytab, setting, true));
    console.log(await measure('keytab, new connection', keytab, setting, false));
    console.log(await measure('gssproxy, keep-alive', proxied, setting, true));
  } finally {
    for (const stop of stops) await stop();
  }
}

const { values } = parseArgs({
  options: {
    enrollments: { type: 'string', default: '1000' },
    clients: { type: 'string', default: '8' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) console.log(HELP);
else await bench(Number(values.enrollments), Number(values.clients));
