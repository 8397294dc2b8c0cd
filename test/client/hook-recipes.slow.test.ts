/**
 * Programs that use a renewed certificate, with the hooks of docs/guides/client-hooks.md. Web servers lose no connection.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { Estuary } from '../support/estuary.ts';
import { liveCertificate } from '../support/estuary-client.ts';
import { localClient, type LocalClient } from '../support/local-client.ts';
import { accepts, freePort } from '../support/ports.ts';
import { PostgresCluster } from '../support/postgres.ts';
import { findCommand, requires } from '../support/requires.ts';
import { untilReady } from '../support/spawned.ts';
import { until } from '../support/until.ts';

let estuary: Estuary;
const children: ChildProcess[] = [];

beforeAll(async () => {
  estuary = await Estuary.start();
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
function ask(socket: TLSSocket, path = '/'): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no answer')), 60_000);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
    socket.once('data', (chunk: Buffer) => {
      clearTimeout(timer);
      socket.removeAllListeners('close');
      resolve(chunk.toString('latin1').split('\r\n')[0] ?? '');
    });
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
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
  for (const worker of workers) worker.catch(() => undefined);
  await until('a connection gets the former certificate', () => served.length > 0);
  expect(await one.step('renew')).toMatchObject({ outcome: 'changed', error: undefined });
  const renewed = liveCertificate(one.folder).serialNumber;
  await until('a connection gets the renewed certificate', () => served.includes(renewed));
  load.stopped = true;
  await Promise.all(workers);
  return [...new Set(served)];
}

function start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  const child = spawn(findCommand(command) ?? command, args, { stdio: 'ignore', env: { ...process.env, ...env } });
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

/** Whether HAProxy's master process answers a command. */
async function answersOn(path: string): Promise<boolean> {
  const socket = createConnection(path);
  try {
    socket.write('show version\n');
    await once(socket, 'data');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

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
    const master = join(dir, 'master.sock');
    const child = start('haproxy', ['-W', '-S', master, '-f', config]);
    writeFileSync(pid, `${child.pid ?? ''}\n`);
    // The worker serves before the master has executed itself again, which is when a signal would be lost.
    await untilReady('haproxy', () => answersOn(master));
    const first = liveCertificate(one.folder).serialNumber;
    expect(readFileSync(join(one.folder, 'live/combined.pem'), 'latin1')).toContain('PRIVATE KEY');
    expect(await renewUnderLoad(one, port)).toEqual([first, liveCertificate(one.folder).serialNumber]);
  });
});

/** Renews, and resolves once the program serves the new certificate. */
async function renewed(one: LocalClient, connected: () => Promise<TLSSocket>): Promise<void> {
  expect(await one.step('renew')).toMatchObject({ outcome: 'changed', error: undefined });
  const { serialNumber } = liveCertificate(one.folder);
  await until('the renewed certificate is served', async () => {
    const socket = await connected();
    const serial = serialOf(socket);
    socket.destroy();
    return serial === serialNumber;
  });
}

describe.skipIf(!requires('apache'))('Apache', () => {
  test('serves a renewed certificate after a graceful restart, and no connection is lost', async () => {
    const dir = join(estuary.dir, 'apache');
    mkdirSync(dir, { recursive: true });
    const port = await freePort();
    const config = join(dir, 'apache.conf');
    const program = findCommand('apache2') ?? 'apache2';
    const pid = join(dir, 'apache.pid');
    const reload = `[ ! -e ${pid} ] || { ${program} -f ${config} -t && ${program} -f ${config} -k graceful; }`;
    const one = await client('apache', reload, []);
    expect(await one.step()).toMatchObject({ outcome: 'changed', error: undefined });
    const modules = ['mpm_event', 'authz_core', 'ssl'].map(
      (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
    );
    writeFileSync(join(dir, 'index.html'), 'ok\n');
    // Apache does not run as root.
    writeFileSync(
      config,
      `ServerName localhost
ServerRoot ${dir}
PidFile ${pid}
ErrorLog ${dir}/error.log
${modules.join('\n')}
${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
Listen 127.0.0.1:${port}
DocumentRoot ${dir}
<Directory ${dir}>
  Require all granted
</Directory>
SSLEngine on
SSLCertificateFile ${one.folder}/live/fullchain.pem
SSLCertificateKeyFile ${one.folder}/live/key.pem
`,
    );
    chmodSync(estuary.dir, 0o755);
    start('apache2', ['-f', config, '-D', 'FOREGROUND']);
    await untilReady('Apache', async () => existsSync(pid) && (await accepts(port)));
    const first = liveCertificate(one.folder).serialNumber;
    const kept = await open(port);
    expect(serialOf(kept)).toBe(first);
    await renewed(one, () => open(port));
    expect(await ask(kept, '/index.html')).toContain('200');
    kept.destroy();
  });
});

describe.skipIf(!requires('mosquitto'))('Mosquitto', () => {
  test('accepts the certificate of a client, and serves its own after SIGHUP', async () => {
    const dir = join(estuary.dir, 'mosquitto');
    mkdirSync(dir, { recursive: true });
    const port = await freePort();
    const [config, pid] = [join(dir, 'mosquitto.conf'), join(dir, 'mosquitto.pid')];
    const one = await client('mosquitto', `[ ! -e ${pid} ] || kill -HUP $(cat ${pid})`, []);
    expect(await one.step()).toMatchObject({ outcome: 'changed', error: undefined });
    writeFileSync(
      config,
      `pid_file ${pid}
user ${process.getuid?.() === 0 ? 'root' : userInfo().username}
listener ${port} 127.0.0.1
certfile ${one.folder}/live/fullchain.pem
keyfile ${one.folder}/live/key.pem
cafile ${one.folder}/ca.pem
require_certificate true
use_identity_as_username true
`,
    );
    const broker = start('mosquitto', ['-c', config]);
    writeFileSync(pid, String(broker.pid));
    await untilReady('Mosquitto', () => accepts(port));
    const live = (name: string): Buffer => readFileSync(join(one.folder, 'live', name));
    const connected = (): Promise<TLSSocket> =>
      new Promise((resolve, reject) => {
        const identity = { cert: live('fullchain.pem'), key: live('key.pem') };
        const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...identity });
        socket.once('error', reject);
        // CONNECT of MQTT 3.1.1 with the client ID "a"; the broker answers CONNACK with 0: accepted.
        socket.once('secureConnect', () => socket.write(Buffer.from('100d00044d5154540402003c000161', 'hex')));
        socket.once('data', (answer: Buffer) => {
          expect(answer.toString('hex')).toBe('20020000');
          resolve(socket);
        });
      });
    (await connected()).destroy();
    await renewed(one, connected);
  });
});

describe.skipIf(!requires('postgres'))('PostgreSQL', () => {
  test('serves a renewed certificate after a reload, with a copy of the key for its user', async () => {
    const placeholder = await client('postgres-first', 'true', []);
    await placeholder.step();
    const pem = (name: string): string => readFileSync(join(placeholder.folder, 'live', name), 'latin1');
    const cluster = await PostgresCluster.start({
      tls: { certificate: pem('fullchain.pem'), privateKey: pem('key.pem') },
    });
    try {
      const { data } = cluster;
      // As in docs/guides/client-hooks.md.
      const copy = (from: string, to: string): string =>
        `install -o $(stat -c %U ${data}) -m 600 "$ESTUARY_FOLDER/${from}" ${data}/${to}.new && mv ${data}/${to}.new ${data}/${to}`;
      const reload = `${copy('key.pem', 'server.key')} && ${copy('fullchain.pem', 'server.pem')} && kill -HUP $(head -n 1 ${data}/postmaster.pid)`;
      const one = await client('postgres', reload, []);
      const connected = (): Promise<TLSSocket> =>
        new Promise((resolve, reject) => {
          const plain = createConnection(cluster.port, '127.0.0.1');
          plain.once('error', reject);
          // SSLRequest; the server answers "S".
          plain.once('connect', () => plain.write(Buffer.from('0000000804d2162f', 'hex')));
          plain.once('data', () => {
            const socket = connect({ socket: plain, rejectUnauthorized: false });
            socket.once('secureConnect', () => resolve(socket));
            socket.once('error', reject);
          });
        });
      await one.step();
      await renewed(one, connected);
    } finally {
      await cluster.stop();
    }
  });
});

describe.skipIf(!requires('eapol'))('wpa_supplicant', () => {
  test("its EAP client authenticates with the certificate to hostapd's RADIUS server, and with the renewed one", async () => {
    const dir = join(estuary.dir, 'eap');
    mkdirSync(dir, { recursive: true });
    const port = await freePort();
    const one = await client('eap', 'true', []);
    await one.step();
    const file = (name: string, content: string): string => {
      writeFileSync(join(dir, name), content);
      return join(dir, name);
    };
    const live = join(one.folder, 'live');
    const server = file(
      'hostapd.conf',
      `driver=none
eap_server=1
eap_user_file=${file('users', '* TLS\n')}
ca_cert=${one.folder}/ca.pem
server_cert=${estuary.dir}/tls/server.pem
private_key=${estuary.dir}/tls/server.key
radius_server_clients=${file('clients', '127.0.0.1 secret\n')}
radius_server_auth_port=${port}
`,
    );
    const network = file(
      'wpa.conf',
      `network={
  key_mgmt=IEEE8021X
  eap=TLS
  identity="eap"
  ca_cert="${one.folder}/ca.pem"
  client_cert="${live}/fullchain.pem"
  private_key="${live}/key.pem"
}
`,
    );
    start('hostapd', [server]);
    const authenticated = async (): Promise<string> => {
      const args = ['-c', network, '-a', '127.0.0.1', '-p', String(port), '-s', 'secret', '-t', '60'];
      const { stdout } = await runAny(findCommand('eapol_test') ?? '', args, { timeout: 120_000 });
      return stdout.toString().trimEnd().split('\n').at(-1) ?? '';
    };
    await until('hostapd answers', async () => (await authenticated()) === 'SUCCESS');
    await one.step('renew');
    expect(await authenticated()).toBe('SUCCESS');
  });
});

describe.skipIf(!requires('charon', 'root'))('strongSwan', () => {
  test('has the renewed certificate and its key after swanctl --load-all', async () => {
    const dir = join(estuary.dir, 'strongswan');
    for (const name of ['x509', 'private']) mkdirSync(join(dir, 'swanctl', name), { recursive: true });
    writeFileSync(join(dir, 'swanctl/swanctl.conf'), '');
    const vici = join(dir, 'vici');
    const plugins = 'random nonce openssl pem pkcs1 pkcs8 x509 revocation pubkey kernel-netlink socket-default vici';
    // Port 0: one that the system chooses.
    writeFileSync(
      join(dir, 'strongswan.conf'),
      `charon-systemd {
  load = ${plugins}
  port = 0
  port_nat_t = 0
  plugins { vici { socket = unix://${vici} } }
}
`,
    );
    const env = { STRONGSWAN_CONF: join(dir, 'strongswan.conf'), SWANCTL_DIR: join(dir, 'swanctl') };
    const swanctl = findCommand('swanctl') ?? '';
    start('charon-systemd', [], env);
    await untilReady('charon', () => Promise.resolve(existsSync(vici)));
    const copy = (from: string, mode: number, to: string): string =>
      `install -m ${mode} "$ESTUARY_FOLDER/${from}" ${env.SWANCTL_DIR}/${to}/device.pem`;
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const load = `${settings.join(' ')} ${swanctl} --load-all --noprompt --uri unix://${vici}`;
    const reload = `${copy('cert.pem', 644, 'x509')} && ${copy('key.pem', 600, 'private')} && ${load}`;
    const one = await client('strongswan', reload, []);
    for (const force of [undefined, 'renew'] as const) {
      expect(await one.step(force)).toMatchObject({ outcome: 'changed', error: undefined });
      const { stdout } = await runAny(swanctl, ['--list-certs', '--uri', `unix://${vici}`], { env });
      const serial = liveCertificate(one.folder).serialNumber;
      const shown = stdout.toString();
      expect(/serial: +([0-9a-f:]+)/.exec(shown)?.[1]?.replaceAll(':', '')).toBe(serial);
      expect(shown).toContain('has private key');
    }
  });
});
