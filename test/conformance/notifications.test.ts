/** Webhooks from a built server to a real HTTPS receiver, which verifies the signature. */
import { spawnSync } from 'node:child_process';
import { createHmac, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, type ClientIdentity, Estuary, itemsOf, section } from '../support/estuary.ts';
import { approve } from '../support/queued-requests.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { until } from '../support/until.ts';

const serialOf = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber.toLowerCase();
const SECRET = 'a secret of 32 octets for the MAC';
let estuary: Estuary;
let receiver: Server;
const received: Record<string, unknown>[] = [];
/** What the receiver answers; undefined: nothing. */
let answer: number | undefined = 204;
let attempts = 0;
/** Tokens and passwords, which no event may contain. */
const secrets = ['a password'];

function verified(header: unknown, body: string): boolean {
  const [, seconds, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(header)) ?? [];
  const isRecent = Math.abs(Number(seconds) - Date.now() / 1000) < 300;
  return (
    isRecent &&
    createHmac('sha256', SECRET)
      .update(`${seconds ?? ''}.${body}`)
      .digest('hex') === mac
  );
}

beforeAll(async () => {
  estuary = await Estuary.start({
    built: true,
    configure(config, dir) {
      const [key, cert] = ['tls/server.key', 'tls/server.pem'].map((name) => readFileSync(join(dir, name)));
      receiver = createServer({ key, cert }, (request, response) => {
        const chunks: Buffer[] = [];
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
          attempts++;
          const body = Buffer.concat(chunks).toString('utf8');
          if (answer === undefined) return;
          if (answer === 204) {
            if (!verified(request.headers['x-estuary-signature'], body)) return response.writeHead(403).end();
            received.push({
              ...(JSON.parse(body) as object),
              url: request.url,
              type_: request.headers['content-type'],
            });
          }
          return response.writeHead(answer, { Location: '/elsewhere' }).end();
        });
      }).listen(0);
      writeFileSync(join(dir, 'hook.key'), SECRET);
      const { port } = receiver.address() as AddressInfo;
      const common = { kind: 'webhook', trust_anchors: 'ca/root.pem', timeout: 60 };
      config['notifications'] = [
        { ...common, name: 'hook', url: `https://localhost:${port}/hook`, signature_key_file: 'hook.key' },
        { ...common, name: 'dead', url: 'https://localhost:1/', events: ['certificate.issued'], labels: ['lab'] },
        {
          ...common,
          name: 'soon',
          url: `https://localhost:${port}/soon`,
          signature_key_file: 'hook.key',
          labels: ['soon'],
        },
      ];
      caSection(config)['profile'] = { validity_days: 20 };
      Object.assign(section(config, 'otp'), { lockout_scope: 'username', max_failures: 1 });
      const [root, soon] = [join(dir, 'soon/root'), join(dir, 'soon/issuing')];
      const names = ['--subject', 'CN=Soon', '--root-subject', 'CN=Soon Root', '--root-days', '20'];
      spawnSync(NODE, [SERVER, 'ca', 'init', '--root', root, '--issuing', soon, ...names]);
      const files = { certificate: 'soon/issuing/issuing.pem', chain: 'soon/issuing/chain.pem' };
      writeFileSync(join(dir, 'upstream-password'), 'a password');
      const est = { url: 'https://localhost:1/.well-known/est', username: 'x', password_file: 'upstream-password' };
      config['ca'] = [
        ...(config['ca'] as []),
        {
          label: 'soon',
          driver: 'file',
          approval: 'manual',
          ...files,
          file: { private_key: 'soon/issuing/issuing.key' },
        },
        { label: 'far', driver: 'est', upstream_trust_anchors: 'ca/root.pem', est },
      ];
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  receiver.closeAllConnections();
  receiver.close();
});

const events = (type: string) => received.filter((event) => event['type'] === type && event['url'] === '/hook');
const about = (type: string, serial: string) =>
  until(`${type} of ${serial}`, () => events(type).find(({ subject }) => subject === serial), 60_000);

test('a certificate is announced when it is issued and revoked, as CloudEvents 1.0 with a signature', async () => {
  const who = await estuary.enrolled(makeKey(), 'device-1');
  const serial = serialOf(who);
  expect(await about('certificate.issued', serial)).toMatchObject({
    ...{ specversion: '1.0', datacontenttype: 'application/json', url: '/hook' },
    type_: 'application/cloudevents+json; charset=utf-8',
    data: { ca: 'devices', serial, certificate_subject: 'CN=device-1' },
  });
  await estuary.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'keyCompromise' });
  expect(await about('certificate.revoked', serial)).toMatchObject({ data: { revocation_reason: 'keyCompromise' } });
  const ids = received.flatMap(({ id, url }) => (url === '/hook' ? [id] : []));
  expect(new Set(ids).size).toBe(ids.length);
  await campaign();
});

/** It is overdue when the server has started again. */
async function campaign(): Promise<void> {
  await estuary.enrolled(makeKey(), 'left-behind');
  // An end that passes during a slow call is rejected.
  await until('the campaign', async () => {
    const by = new Date(Date.now() + 1500).toISOString();
    const { status } = await estuary.admin('POST', '/admin/renewals', { filter: { ca: 'devices' }, by });
    expect([201, 400]).toContain(status);
    return status === 201;
  });
}

const seen = (type: string) => until(type, () => events(type)[0], 60_000);

test('a request that waits is announced, and its decision; a receiver with labels gets nothing else', async () => {
  const { token } = await estuary.otp({ ca: 'soon' });
  secrets.push(token);
  const csr = onTheWire(simpleCsr(makeKey(), 'waits'));
  expect((await estuary.enroll(csr, { path: 'soon/simpleenroll', password: token })).status).toBe(202);
  await approve(estuary, 'waits');
  expect(await seen('request.queued')).toMatchObject({ data: { ca: 'soon' } });
  expect(await seen('request.decided')).toMatchObject({ data: { ca: 'soon', decision: 'approved' } });
  const selected = () => received.filter(({ url }) => url === '/soon');
  await until('the events of the label', () => selected().some(({ type }) => type === 'request.decided'), 60_000);
  for (const { data } of selected()) expect(data).toMatchObject({ ca: 'soon' });
});

test('a lockout is announced without the password', async () => {
  const password = 'Guessed-4711';
  secrets.push(password);
  const headers = { Authorization: `Basic ${Buffer.from(`mallory:${password}`).toString('base64')}` };
  for (let n = 0; n < 3; n++) await estuary.enroll(onTheWire(simpleCsr(makeKey())), { headers });
  await seen('authentication.locked');
});

test('a CA that expires, and an upstream CA that cannot be used, are announced', async () => {
  expect(await seen('ca.expiring')).toMatchObject({ data: { ca: 'soon', days: 30 } });
  expect(await seen('upstream.unavailable')).toMatchObject({ data: { ca: 'far' } });
});

test('a certificate that expires soon is announced once, and not if there is a newer one', async () => {
  const who = await estuary.enrolled(makeKey(), 'expiring');
  const serial = serialOf(who);
  expect(await about('certificate.expiring', serial)).toMatchObject({ data: { days: 30, ca: 'devices' } });
});

test.each([500, 302, undefined])(
  'what the receiver answered with %s is sent again until it accepts, also after kill -9',
  async (bad) => {
    answer = bad;
    const before = attempts;
    const serial = serialOf(await estuary.enrolled(makeKey(), `again-${bad ?? 'slow'}`));
    await until('an attempt', () => attempts > before);
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    answer = 204;
    await estuary.restart();
    await about('certificate.issued', serial);
    expect(received.some(({ url }) => url === '/elsewhere')).toBe(false);
  },
  60_000,
);

test('certificates that a campaign did not replace are announced', async () => {
  expect(await seen('renewal.overdue')).toMatchObject({ data: { ca: 'devices' } });
});

test('no event has a secret', () => {
  const text = JSON.stringify(received);
  expect(secrets.length).toBeGreaterThan(2);
  for (const secret of [...secrets, estuary.adminToken, SECRET]) expect(text).not.toContain(secret);
});

test('a sample can be sent; a receiver that does not accept it is 503', async () => {
  const call = (name: string) => estuary.admin('POST', `/admin/notifications/${name}/test`);
  expect((await call('hook')).status).toBe(200);
  expect(events('test')).toHaveLength(1);
  expect((await call('dead')).status).toBe(503);
  expect((await call('nobody')).status).toBe(404);
});

test('each receiver is listed with its state: the last delivery, or why it fails', async () => {
  const list = async () => itemsOf((await estuary.admin('GET', '/admin/notifications')).json);
  const { port } = receiver.address() as AddressInfo;
  const hook = { name: 'hook', kind: 'webhook', destination: `https://localhost:${port}`, events: null, labels: null };
  expect(await list()).toMatchObject([
    { ...hook, state: 'ok', failures: 0, problem: null },
    { name: 'dead', events: ['certificate.issued'], labels: ['lab'], state: 'ok', delivered_at: null },
    { name: 'soon', labels: ['soon'] },
  ]);
  await estuary.enrolled(makeKey(), 'unheard', [], 'lab/simpleenroll');
  const [heard, dead] = await until('a failed delivery', async () => {
    const all = await list();
    return all[0]?.['delivered_at'] !== null && all[1]?.['state'] === 'failing' ? all : undefined;
  });
  expect(heard).toMatchObject({ state: 'ok', delivered_at: expect.stringMatching(/Z$/) as string });
  expect(Number(dead?.['failures'])).toBeGreaterThan(0);
  expect(dead?.['problem']).toMatch(/ECONNREFUSED|refused/);
  expect(Number(dead?.['behind'])).toBeGreaterThan(0);
});
