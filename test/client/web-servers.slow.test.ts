/** Nginx and HAProxy serve a renewed certificate without a dropped connection; the hook reloads them, as in docs/guides/client.md. */
import { spawn, type ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Estuary, hashOtpsCheaply } from '../support/estuary.ts';
import { liveCertificate } from '../support/estuary-client.ts';
import { localClient, type LocalClient } from '../support/local-client.ts';
import { accepts, freePort } from '../support/ports.ts';
import { findCommand, requires } from '../support/requires.ts';
import { untilReady } from '../support/spawned.ts';
import { until } from '../support/until.ts';

let estuary: Estuary;
const children: ChildProcess[] = [];

beforeAll(async () => {
  estuary = await Estuary.start({ configure: hashOtpsCheaply });
});
afterAll(async () => {
  // Killed outright, nginx's master would leave its workers behind.
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await estuary.stop();
});

async function client(name: string, reload: string, formats: readonly string[]): Promise<LocalClient> {
  const { token } = await estuary.otp({ client_id: name });
  return localClient(join(estuary.dir, name), {
    server: {
      url: `https://localhost:${estuary.server.port('est')}`,
      ca_fingerprint: new X509Certificate(estuary.root).fingerprint256,
    },
    certificate: { subject: `CN=${name}`, dns_names: ['localhost'], otp_env: 'OTP', reload, formats },
    env: { OTP: token },
  });
}

function open(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    // The CA of the tests makes certificates for clients; who it is for is not what is asked here.
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', rejectUnauthorized: false });
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', reject);
  });
}

const serialOf = (socket: TLSSocket): string => socket.getPeerX509Certificate()?.serialNumber.toLowerCase() ?? '';

/** One request on a connection that is kept. */
function ask(socket: TLSSocket): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no answer')), 10_000);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
    socket.once('data', (chunk: Buffer) => {
      clearTimeout(timer);
      socket.removeAllListeners('close');
      resolve(chunk.toString('latin1').split('\r\n')[0] ?? '');
    });
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  });
}

/**
 * Renews under a constant stream of connections.
 *
 * @returns the serial numbers that were served, in their order
 */
async function renewUnderLoad(one: LocalClient, port: number): Promise<string[]> {
  const served: string[] = [];
  const load = { stopped: false };
  const workers = Array.from({ length: 4 }, async () => {
    while (!load.stopped) {
      const socket = await open(port);
      expect(await ask(socket)).toContain('200');
      served.push(serialOf(socket));
      socket.destroy();
    }
  });
  expect(await one.step('renew')).toMatchObject({ outcome: 'changed', error: undefined });
  const renewed = liveCertificate(one.folder).serialNumber;
  await until('a connection gets the renewed certificate', () => served.includes(renewed));
  load.stopped = true;
  await Promise.all(workers);
  return [...new Set(served)];
}

function start(command: string, args: readonly string[]): ChildProcess {
  const child = spawn(findCommand(command) ?? command, args, { stdio: 'ignore' });
  children.push(child);
  return child;
}

describe.skipIf(!requires('nginx'))('nginx', () => {
  test('reads key and chain through the link; a reload takes the new pair, and no connection is lost', async () => {
    const dir = join(estuary.dir, 'nginx');
    mkdirSync(join(dir, 'tmp'), { recursive: true });
    const port = await freePort();
    const config = join(dir, 'nginx.conf');
    const pid = join(dir, 'nginx.pid');
    const reload = `[ ! -e ${pid} ] || ${findCommand('nginx') ?? 'nginx'} -c ${config} -e ${dir}/error.log -s reload`;
    const one = await client('nginx', reload, []);
    expect(await one.step()).toMatchObject({ outcome: 'changed', error: undefined });
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${dir}/tmp/${name};`,
    );
    writeFileSync(
      config,
      `daemon off; pid ${pid}; error_log ${dir}/error.log; worker_processes 1;
events { worker_connections 256; }
http { access_log off; ${temporary.join(' ')}
  server { listen 127.0.0.1:${port} ssl;
    ssl_certificate ${one.folder}/live/fullchain.pem;
    ssl_certificate_key ${one.folder}/live/key.pem;
    ssl_session_cache off; ssl_session_tickets off;
    location / { return 200 "ok"; } } }
`,
    );
    start('nginx', ['-c', config, '-e', `${dir}/error.log`]);
    await untilReady('nginx', async () => existsSync(pid) && (await accepts(port)));
    const first = liveCertificate(one.folder).serialNumber;
    const kept = await open(port);
    expect([await ask(kept), serialOf(kept)]).toEqual(['HTTP/1.1 200 OK', first]);
    expect(await renewUnderLoad(one, port)).toEqual([first, liveCertificate(one.folder).serialNumber]);
    kept.destroy();
  });
});

describe.skipIf(!requires('haproxy'))('HAProxy', () => {
  test('reads one file with chain and key; a reload takes the new one, and no connection is lost', async () => {
    const dir = join(estuary.dir, 'haproxy');
    mkdirSync(dir, { recursive: true });
    const port = await freePort();
    const config = join(dir, 'haproxy.cfg');
    const pid = join(dir, 'haproxy.pid');
    const one = await client('haproxy', `[ ! -e ${pid} ] || kill -USR2 $(head -n 1 ${pid})`, ['combined']);
    expect(await one.step()).toMatchObject({ outcome: 'changed', error: undefined });
    writeFileSync(
      config,
      `global
  stats socket ${dir}/haproxy.sock mode 600 level admin expose-fd listeners
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend web
  bind 127.0.0.1:${port} ssl crt ${one.folder}/live/combined.pem
  http-request return status 200 content-type text/plain string ok
`,
    );
    const child = start('haproxy', ['-W', '-f', config]);
    writeFileSync(pid, `${child.pid ?? ''}\n`);
    await untilReady('haproxy', () => accepts(port));
    const first = liveCertificate(one.folder).serialNumber;
    expect(readFileSync(join(one.folder, 'live/combined.pem'), 'latin1')).toContain('PRIVATE KEY');
    expect(await renewUnderLoad(one, port)).toEqual([first, liveCertificate(one.folder).serialNumber]);
  });
});
