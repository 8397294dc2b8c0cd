/**
 * A log that cannot be written stops neither the service nor a stop: every way in, during faults of standard output that
 * begin while the server runs, before a reload and before a start.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'smol-toml';
import { postCmc, requestBy, tcr } from '../support/cmc.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { type ClientIdentity, Estuary, hashOtpsCheaply, section } from '../support/estuary.ts';
import { type FaultyLog, LogFile, LogPipe } from '../support/faulty-log.ts';
import { call } from '../support/https.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { freePorts } from '../support/ports.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER, type ServerProcess } from '../support/server-process.ts';
import { until } from '../support/until.ts';

interface Faulty {
  readonly output: FaultyLog;
  readonly begin: () => void;
}

const onPipe = (begin: (pipe: LogPipe) => void) => (): Faulty => {
  const output = new LogPipe();
  return { output, begin: () => begin(output) };
};

function onDisk(): Faulty {
  const output = new LogFile();
  return { output, begin: () => output.fill() };
}

/** The faults, and what `/readyz` then says of the log. */
const FAULTS: readonly (readonly [name: string, make: () => Faulty, state: 'degraded' | undefined])[] = [
  ...(requires('root') ? [['a full disk', onDisk, 'degraded'] as const] : []),
  ['a reader that is gone', onPipe((pipe) => pipe.close()), 'degraded'],
  ['a pipe that nobody reads', onPipe((pipe) => pipe.block()), 'degraded'],
  ['a slow reader', onPipe((pipe) => pipe.slow()), undefined],
];

const PHASES = ['while the server runs', 'before a reload', 'before a start'] as const;

const folder = temporaryFolder();
const ARGS = [SERVER, '--config', folder.file('est.toml')];
const key = makeKey();
const ports = { est: 0, admin: 0, publication: 0 };
let child: ChildProcess | undefined;
let output: FaultyLog | undefined;
let estuary: Estuary;
let client: ClientIdentity;

const server: ServerProcess = {
  pid: 0,
  output: () => '',
  log: () => [],
  exited: new Promise<never>(() => undefined),
  port: (name) => ports[name],
  signal: (name) => void child?.kill(name),
  stop: async () => {
    const exited = child === undefined ? undefined : once(child, 'exit');
    child?.kill('SIGTERM');
    await exited;
    return { code: child?.exitCode ?? null, signal: child?.signalCode ?? null };
  },
};

beforeAll(async () => {
  await makeQuickstart(folder.path);
  const [est = 0, admin = 0, publication = 0] = await freePorts(3);
  Object.assign(ports, { est, admin, publication });
  const config = parse(readFileSync(folder.file('est.toml'), 'utf8'));
  hashOtpsCheaply(config, folder.path);
  Object.assign(section(config, 'publication'), {
    enabled: true,
    host: '127.0.0.1',
    base_url: 'http://pki.example.test/',
  });
  for (const [name, port] of Object.entries(ports)) Object.assign(section(config, name), { port });
  config['cmc'] = { certificate: 'tls/server.pem', private_key: 'tls/server.key' };
  Object.assign(section(config, 'serverkeygen'), { encryption: 'optional' });
  writeFileSync(folder.file('est.toml'), stringify(config));
  estuary = new Estuary(folder.path, server, {});
  await start('ignore');
  client = await estuary.enrolled(key);
  await server.stop();
});
afterEach(() => {
  child?.kill('SIGKILL');
  output?.remove();
  output = undefined;
});
afterAll(() => folder.remove());

/** Starts the server; its log may say nothing. */
async function start(stdout: number | 'ignore'): Promise<void> {
  child = spawn(NODE, ARGS, { stdio: ['ignore', stdout, 'ignore'] });
  await until('the EST listener answers', () => WAYS.cacerts().then(isSuccess, () => false));
}

/** What the ways need of the log: nothing. */
const WAYS = {
  cacerts: () => est('cacerts'),
  csrattrs: () => est('csrattrs'),
  otp: async () => est('simpleenroll', await password()),
  certificate: () => est('simpleenroll', { client }),
  simplereenroll: () => est('simplereenroll', { client }),
  serverkeygen: async () => est('serverkeygen', await password()),
  fullcmc: async () => {
    const message = await requestBy(client, { reqSequence: [tcr(1, simpleCsr(key, 'device-1'))] });
    return (await postCmc(estuary, message, client)).status;
  },
  crl: () => published('crl/devices.crl'),
  'CA certificate': () => published('ca/devices.cer'),
  search: () => admin('GET', '/admin/certificates?limit=1'),
  audit: () => admin('GET', '/admin/audit?limit=1'),
  reload: () => admin('POST', '/admin/reload'),
  health: () => admin('GET', '/healthz'),
  readiness: () => admin('GET', '/readyz'),
  'a path that does not exist': async () => ((await est('none')) === 404 ? 200 : 500),
} satisfies Record<string, () => Promise<number>>;

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

async function est(path: string, credential: { client?: ClientIdentity; password?: string } = {}): Promise<number> {
  const isPost = Object.keys(credential).length > 0;
  if (!isPost) return (await estuary.est(path)).status;
  return (await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { path, ...credential })).status;
}
const password = async () => ({ password: (await estuary.otp()).token });
const admin = async (method: string, path: string): Promise<number> => (await estuary.admin(method, path)).status;
const published = async (path: string): Promise<number> =>
  (await fetch(`http://127.0.0.1:${ports.publication}/${path}`)).status;

async function failing(): Promise<string[]> {
  const failed: string[] = [];
  for (const [way, status] of Object.entries(WAYS)) if (!isSuccess(await status())) failed.push(way);
  return failed;
}

async function logState(): Promise<unknown> {
  const { status, json } = await estuary.admin('GET', '/readyz');
  expect(status).toBe(200);
  return (json as { parts: { log?: string } }).parts.log;
}

async function lostLines(): Promise<number> {
  const headers = { Authorization: `Bearer ${estuary.adminToken}` };
  const { text } = await call({ port: ports.admin, path: '/metrics', tls: { ca: estuary.root }, headers });
  return Number(/^estuary_log_lines_lost_total (\d+)/m.exec(text)?.[1]);
}

test.each(FAULTS)('log to %s: everything is answered', async (_, make, state) => {
  const { output: faulty, begin } = make();
  output = faulty;
  const arrived: string[] = [];
  faulty.lines.on('data', (chunk: Buffer) => arrived.push(chunk.toString()));
  await start(faulty.fd);
  for (const phase of PHASES) {
    begin();
    if (phase === 'before a reload') server.signal('SIGHUP');
    if (phase === 'before a start') {
      expect(await server.stop()).toEqual({ code: 0, signal: null });
      await start(faulty.fd);
    }
    if (phase === 'while the server runs') expect(await failing(), phase).toEqual([]);
    if (state !== undefined) await until('/readyz names the log', async () => (await logState()) === state);
    expect(await failing(), phase).toEqual([]);
    faulty.repair();
    await until('/readyz no longer names the log', async () => (await logState()) === undefined);
    const { headers } = await estuary.est('cacerts');
    await until('the log goes on', () => arrived.join('').includes(String(headers['x-request-id'])));
    expect(await lostLines(), phase).toBe(0);
  }
  begin();
  expect(await server.stop()).toEqual({ code: 0, signal: null });
});

test('more than waits is lost, counted, and named when the log goes on', async () => {
  const pipe = new LogPipe();
  output = pipe;
  let text = '';
  pipe.lines.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await start(pipe.fd);
  pipe.close();
  const agent = new Agent({ keepAlive: true, maxSockets: 8, ca: estuary.root });
  const lost = async (): Promise<number> => {
    // Lines of 1 MiB in a few rounds.
    await Promise.all(Array.from({ length: 200 }, () => estuary.est('x'.repeat(250), { agent })));
    return lostLines();
  };
  await until('lines are lost', async () => (await lost()) > 0);
  agent.destroy();
  pipe.repair();
  const missing = (): number =>
    [...text.matchAll(/"lost":(\d+).*log lines are missing here/g)].reduce((sum, [, n]) => sum + Number(n), 0);
  await until('the log says what is missing', async () => missing() > 0 && missing() === (await lostLines()));
});

test('log to a closed socket, as of a journal that ended: the service answers and stops', async () => {
  child = spawn(NODE, ARGS, { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout?.destroy();
  await until('the EST listener answers', () => WAYS.cacerts().then(isSuccess, () => false));
  await until('/readyz names the log', async () => (await logState()) === 'degraded');
  expect(await failing()).toEqual([]);
  expect(await server.stop()).toEqual({ code: 0, signal: null });
});

test('log to a terminal that is gone: the service answers, and a stop ends in time', async () => {
  const pidFile = folder.file('pid');
  const command = `echo $$ > ${pidFile}; exec ${[NODE, ...ARGS].join(' ')}`;
  child = spawn('script', ['-qfc', command, '/dev/null'], { stdio: ['ignore', 'ignore', 'ignore'] });
  await until('the EST listener answers', () => WAYS.cacerts().then(isSuccess, () => false));
  const pid = Number(readFileSync(pidFile, 'utf8'));
  child.kill('SIGKILL');
  await once(child, 'exit');
  await until('/readyz names the log', async () => (await logState()) === 'degraded');
  expect(await failing()).toEqual([]);
  process.kill(pid, 'SIGTERM');
  await until('the server has stopped', () => !existsSync(`/proc/${pid}`));
});
