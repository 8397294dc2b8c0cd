/** Start, signals and reload; and what never reaches a log or a record. */
import { once } from 'node:events';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { untilLogged } from '../support/server-process.ts';

// Each test starts a server.

const key = makeKey();
const wire = onTheWire(simpleCsr(key));
let estuary: Estuary | undefined;

async function start(configure?: (config: import('smol-toml').TomlTable, dir: string) => void): Promise<Estuary> {
  estuary = await Estuary.start(configure === undefined ? {} : { configure });
  return estuary;
}
afterEach(() => estuary?.stop());

test('SIGTERM: a request in flight is finished, then the process ends with 0', async () => {
  const est = await start((config) => (section(config, 'server')['shutdown_grace'] = 120));
  const { token } = await est.otp();
  const socket = await openTls(est.server.port('est'), { ca: est.root });
  const head =
    'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\n' +
    `Authorization: Basic ${Buffer.from(`d:${token}`).toString('base64')}\r\nContent-Length: ${wire.length}\r\n` +
    'Expect: 100-continue\r\n\r\n';
  socket.write(head);
  // "100 Continue": the server has read the head.
  await once(socket, 'data');
  socket.write(wire.slice(0, 50));
  est.server.signal('SIGTERM');
  await untilLogged(est.server, { msg: 'stopping' });
  await expect(openTls(est.server.port('est'), { ca: est.root })).rejects.toThrow();
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  socket.write(wire.slice(50));
  expect(await est.server.exited).toEqual({ code: 0, signal: null });
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
});

/** A new key and certificate under the same names, from the same root. */
function replaceServerCertificate(dir: string): void {
  const options = { cwd: dir, stdio: 'pipe' } as const;
  const request = [
    'req',
    '-new',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=localhost',
  ];
  execFileSync('openssl', [...request, '-keyout', 'tls/server.key', '-out', 'new.csr'], options);
  writeFileSync(join(dir, 'new.ext'), 'subjectAltName = DNS:localhost\nextendedKeyUsage = serverAuth\n');
  const sign = ['x509', '-req', '-in', 'new.csr', '-CA', 'ca/root.pem', '-CAkey', 'ca/root.key', '-days', '1'];
  execFileSync('openssl', [...sign, '-extfile', 'new.ext', '-out', 'tls/server.pem'], options);
}

test('SIGHUP: another server certificate and bearer token count at once; open connections stay', async () => {
  const est = await start();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  expect((await est.est('cacerts', { agent })).status).toBe(200);
  const before = await openTls(est.server.port('est'), { ca: est.root });
  const serial = before.getPeerCertificate().serialNumber;
  before.destroy();

  replaceServerCertificate(est.dir);
  est.reconfigure((config) => {
    section(config, 'admin', 'bearer_token')['tokens'] = [
      { token_hash: `sha256:${'0'.repeat(64)}`, description: 'another' },
    ];
    section(config, 'est')['retry_after'] = 99;
  });
  est.server.signal('SIGHUP');
  await untilLogged(est.server, { msg: 'configuration reloaded' });

  const after = await openTls(est.server.port('est'), { ca: est.root });
  expect(after.getPeerCertificate().serialNumber).not.toBe(serial);
  after.destroy();
  expect((await est.admin('GET', '/admin/otp')).status, 'the old bearer token').toBe(401);
  expect((await est.est('cacerts', { agent })).status, 'on the connection of before').toBe(200);
  const restart = await untilLogged(est.server, { msg: 'changed keys that need a restart' });
  expect(restart['keys']).toEqual(['est.retry_after']);
  agent.destroy();
});

test('no token, password or key is in any log, record or the store in clear', async () => {
  const est = await start();
  const good = await est.otp();
  const wrong = `wrong-${randomBytes(9).toString('hex')}`;
  expect((await est.enroll(wire, { password: good.token })).status).toBe(200);
  expect((await est.enroll(wire, { password: good.token })).status).toBe(401);
  expect((await est.enroll(wire, { password: wrong })).status).toBe(401);
  expect((await est.enroll('nonsense', { password: good.token })).status).toBe(401);
  await est.server.stop();
  const issuingKey = readFileSync(join(est.dir, 'ca/issuing.key'), 'latin1').split('\n')[1] ?? '';
  const secrets = [good.token, wrong, est.adminToken, issuingKey];
  const data = join(est.dir, 'data');
  const places = readdirSync(data)
    .map((name) => join(data, name))
    .filter((path) => statSync(path).isFile());
  expect(places.length).toBeGreaterThan(1);
  const texts = [est.server.output(), ...places.map((path) => readFileSync(path, 'latin1'))];
  for (const secret of secrets) {
    for (const form of [secret, Buffer.from(secret).toString('base64').replace(/=+$/, '')]) {
      expect(texts.filter((text) => text.includes(form))).toEqual([]);
    }
  }
});

test('an audit file that cannot be written stops issuance; nothing half-done stays', async () => {
  const est = await start();
  const { id, token } = await est.otp();
  const file = join(est.dir, 'data/audit.log');
  // Shorter than the store knows it: the log has been tampered with, and nothing may be written after that.
  writeFileSync(file, readFileSync(file).subarray(0, 40));
  const answer = await est.enroll(wire, { password: token });
  expect([500, 503]).toContain(answer.status);
  expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect((await est.admin('GET', `/admin/otp/${id}`)).json['uses']).toBe(0);
  expect((await est.admin('GET', '/admin/certificates')).json['items']).toEqual([]);
  expect((await est.admin('GET', '/readyz')).status).toBe(503);
  expect((await est.est('cacerts')).status).toBe(200);
});
