/** What a benchmark needs before it starts: a server on a PKI of its own, and devices with certificates. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { ROOT } from '../../../test/support/root.ts';
import { type ServerProcess, startServer } from '../../../test/support/server-process.ts';
import { enrollRequest, exchange, open } from './http.ts';
import type { JobClient } from './load.ts';

export type HashAlgorithm = 'argon2id' | 'sha256-hmac';

/** Kinds of the devices' keys; with ML-DSA the whole PKI is of it. */
export const KEY_KINDS = ['p-256', 'rsa-2048', 'ml-dsa-65'] as const;
export type KeyKind = (typeof KEY_KINDS)[number];

/** What `openssl req` makes them with. */
const KEY_OPTIONS: Readonly<Record<KeyKind, readonly string[]>> = {
  'p-256': ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'rsa-2048': ['-newkey', 'rsa:2048'],
  'ml-dsa-65': ['-newkey', 'ml-dsa-65'],
};

export interface FleetOptions {
  readonly hash: HashAlgorithm;
  /** How many devices. */
  readonly size: number;
  readonly key: KeyKind;
  /** Added to the server's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A device and what it shows; how it connects, a row says. */
export type FleetClient = Omit<JobClient, 'operation' | 'connection'>;

export interface Fleet {
  readonly server: ServerProcess;
  /** Milliseconds that the server's event loop was late at the 99th percentile since it was last asked. */
  readonly loopDelay: () => Promise<number>;
  readonly ca: string;
  /** Devices that hold a certificate. */
  readonly devices: readonly FleetClient[];
  /** The same devices with one-time passwords in place of certificates. */
  readonly newcomers: readonly FleetClient[];
}

/** More uses than any run can take. */
const MANY_USES = 1_000_000;

/** The quickstart's configuration in `folder`, with another hash for the OTPs; the server listens when it resolves. */
export async function startFleet(folder: string, { hash, size, key, env }: FleetOptions): Promise<Fleet> {
  const quickstart = ['--no-start', '--dir', folder, '--est-port', '0', '--admin-port', '0'];
  const algorithm = key === 'ml-dsa-65' ? ['--algorithm', key] : [];
  execFileSync(join(ROOT, 'scripts', 'quickstart'), [...quickstart, ...algorithm], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: ENVIRONMENT,
  });
  configure(folder, hash);
  const server = await startServer({
    config: join(folder, 'est.toml'),
    env: { NODE_ENV: 'production', ...env },
    listeners: ['est', 'admin', 'publication'],
  });
  try {
    const newcomers: FleetClient[] = [];
    const devices: FleetClient[] = [];
    for (let i = 0; i < size; i++) {
      const { newcomer, device } = await equip(folder, server, { name: `bench-${i}`, key });
      newcomers.push(newcomer);
      devices.push(device);
    }
    return {
      server,
      loopDelay: () => loopDelay(folder, server),
      ca: join(folder, 'ca', 'root.pem'),
      devices,
      newcomers,
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** With OpenSSL 3.5 first, which has ML-DSA, where scripts/fetch-estclient has fetched it. */
const ENVIRONMENT = { ...process.env, PATH: `${join(ROOT, '.cache', 'libest')}:${process.env['PATH'] ?? ''}` };

const PUBLICATION =
  '[publication]\nenabled = true\nhost = "127.0.0.1"\nport = 0\nbase_url = "http://pki.example.test"\n';

function configure(folder: string, hash: HashAlgorithm): void {
  const path = join(folder, 'est.toml');
  // Long enough that the idle ones of a crowd are there until the end of a row.
  const patience = '[server]\nkeep_alive_timeout = 120\n';
  writeFileSync(path, `${patience}\n${PUBLICATION}\n${readFileSync(path, 'utf8')}`);
  const edit = (from: string, to: string): void => writeFileSync(path, readFileSync(path, 'utf8').replace(from, to));
  // A flood of wrong passwords costs what it can.
  edit('lockout_duration = 900', 'lockout_duration = 0');
  if (hash === 'argon2id') return;
  writeFileSync(join(folder, 'otp.key'), randomBytes(32), { mode: 0o600 });
  edit('hash_algorithm = "argon2id"', `hash_algorithm = "${hash}"\nhmac_key_file = "otp.key"`);
}

/** Where a server listens. */
export type Ports = Pick<ServerProcess, 'port'>;

/** Makes a device, and has it enrolled. */
export async function equip(
  folder: string,
  server: Ports,
  { name, key }: { readonly name: string; readonly key: KeyKind },
): Promise<{ newcomer: FleetClient; device: FleetClient }> {
  const file = (end: string): string => join(folder, 'client', `${name}.${end}`);
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}.example.com`];
  openssl(
    'req',
    '-new',
    ...KEY_OPTIONS[key],
    '-nodes',
    '-keyout',
    file('key'),
    ...names,
    '-outform',
    'DER',
    '-out',
    file('csr'),
  );

  const token = await createOtp(folder, server, name);
  const authorization = `Basic ${Buffer.from(`${name}:${token}`).toString('base64')}`;
  const ca = readFileSync(join(folder, 'ca', 'root.pem'));
  const socket = await open({ port: server.port('est'), context: createSecureContext({ ca }) });
  const answer = await exchange(socket, enrollRequest('simpleenroll', readFileSync(file('csr')), authorization));
  socket.destroy();
  if (answer.status !== 200) throw new Error(`${name} was not enrolled: ${answer.status} ${answer.body}`);
  writeFileSync(file('p7'), Buffer.from(answer.body, 'base64'));
  openssl('pkcs7', '-inform', 'DER', '-in', file('p7'), '-print_certs', '-out', file('pem'));
  return {
    newcomer: { csr: file('csr'), authorization },
    device: { csr: file('csr'), certificate: file('pem'), key: file('key') },
  };
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'], env: ENVIRONMENT });
}

async function createOtp(folder: string, server: Ports, name: string): Promise<string> {
  const text = await callAdmin(folder, server, '/admin/otp', { client_id: name, max_uses: MANY_USES });
  const token = /"token":"([^"]+)"/.exec(text)?.[1];
  if (token === undefined) throw new Error(`no token: ${text}`);
  return token;
}

async function loopDelay(folder: string, server: ServerProcess): Promise<number> {
  const text = await callAdmin(folder, server, '/metrics');
  const seconds = /^estuary_event_loop_delay_seconds\{quantile="0.99"\} (\S+)$/m.exec(text)?.[1];
  return Number(seconds) * 1000;
}

/** @param body as JSON; absent: GET @returns the answer's text */
function callAdmin(folder: string, server: Ports, path: string, body?: object): Promise<string> {
  const headers = {
    Authorization: `Bearer ${readFileSync(join(folder, 'admin', 'token'), 'utf8')}`,
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  };
  const ca = readFileSync(join(folder, 'ca', 'root.pem'));
  const options = { host: '127.0.0.1', servername: 'localhost', port: server.port('admin'), path, ca, headers };
  return new Promise((resolve, reject) => {
    const call = request({ ...options, method: body === undefined ? 'GET' : 'POST' }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
      response.on('end', () => resolve(text));
    });
    call.on('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
