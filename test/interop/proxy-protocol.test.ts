/** HAProxy and nginx (`stream`) in front, each telling the device's address by the PROXY protocol. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { accepts, freePort } from '../support/ports.ts';
import { findCommand, requires } from '../support/requires.ts';
import { removeFolder } from '../support/folders.ts';

const BALANCER = '127.0.0.7';
const DEVICE = '127.0.0.21';

interface Balancer {
  readonly command: 'haproxy' | 'nginx';
  readonly arguments: (file: string) => string[];
  /** The configuration; `port` is its own. */
  readonly configuration: (dir: string, port: number, server: number) => string;
}

const haproxy = (option: string): Balancer => ({
  command: 'haproxy',
  arguments: (file) => ['-db', '-f', file],
  configuration: (_dir, port, server) => `
global
  maxconn 100
defaults
  mode tcp
  timeout connect 10s
  timeout client 60s
  timeout server 60s
listen est
  bind 127.0.0.1:${port}
  server one 127.0.0.1:${server} ${option} source ${BALANCER} check inter 500 fall 100
`,
});

const nginx: Balancer = {
  command: 'nginx',
  arguments: (file) => ['-c', file, '-e', 'stderr'],
  configuration: (dir, port, server) => `
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr;
events { worker_connections 100; }
stream {
  server {
    listen 127.0.0.1:${port};
    proxy_pass 127.0.0.1:${server};
    proxy_bind ${BALANCER};
    proxy_protocol on;
  }
}
`,
};

describe.skipIf(!requires('haproxy', 'nginx'))('behind a balancer', () => {
  let estuary: Estuary;
  beforeAll(async () => {
    estuary = await Estuary.start({
      configure: (config) => (section(config, 'est')['proxy_protocol'] = [`${BALANCER}/32`]),
    });
  });
  afterAll(() => estuary.stop());

  async function startBalancer(balancer: Balancer): Promise<number> {
    const dir = mkdtempSync(join(tmpdir(), 'estuary-balancer-'));
    const port = await freePort();
    const file = join(dir, 'balancer.conf');
    writeFileSync(file, balancer.configuration(dir, port, estuary.server.port('est')));
    const program = findCommand(balancer.command) ?? balancer.command;
    const child: ChildProcess = spawn(program, balancer.arguments(file), { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const ended = once(child, 'exit');
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
      removeFolder(dir);
    });
    await vi.waitFor(async () => expect(await accepts(port), said).toBe(true), { timeout: 60_000, interval: 200 });
    return port;
  }

  test.each<[what: string, balancer: Balancer]>([
    ['HAProxy, version 1', haproxy('send-proxy')],
    ['HAProxy, version 2, with its health checks (LOCAL)', haproxy('send-proxy-v2 check-send-proxy')],
    ['HAProxy, version 2 with TLVs', haproxy('send-proxy-v2 proxy-v2-options unique-id,crc32c')],
    ['nginx, version 1', nginx],
  ])("%s: an enrollment is logged and audited with the device's address", async (_, balancer) => {
    const port = await startBalancer(balancer);
    const { token } = await estuary.otp();
    const answer = await call({
      port,
      path: '/.well-known/est/simpleenroll',
      method: 'POST',
      headers: {
        'Content-Type': 'application/pkcs10',
        Authorization: `Basic ${Buffer.from(`device:${token}`).toString('base64')}`,
      },
      body: onTheWire(simpleCsr(makeKey(), 'device-1')),
      tls: { ca: estuary.root },
      agent: new Agent({ keepAlive: false, localAddress: DEVICE }),
    });
    expect(answer.status).toBe(200);
    const { json } = await estuary.admin('GET', '/admin/audit?limit=1000');
    const id = answer.headers['x-request-id'];
    const issued = itemsOf(json).find(({ type, request_id }) => type === 'certificate.issued' && request_id === id);
    expect(issued).toMatchObject({ address: DEVICE });
  });
});
