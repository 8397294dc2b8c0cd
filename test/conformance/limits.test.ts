/** Beyond `[limits]`, 503 with Retry-After on each listener; under overload, requests in progress are completed. */
import { request as httpRequest } from 'node:http';
import { Agent } from 'node:https';
import { afterEach, expect, test } from 'vitest';
import type { TomlTable } from 'smol-toml';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { rssMiB } from '../support/slow-clients.ts';

let estuary: Estuary | undefined;
afterEach(async () => {
  await estuary?.stop();
  estuary = undefined;
});

async function start(limits: TomlTable, built = false): Promise<Estuary> {
  estuary = await Estuary.start({
    built,
    listeners: ['est', 'admin', 'publication'],
    configure(config) {
      Object.assign(section(config, 'limits'), limits);
      const base = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), base);
    },
  });
  return estuary;
}

interface Told {
  readonly status: number;
  readonly retryAfter: unknown;
  readonly id: unknown;
  readonly type: unknown;
}

function get(est: Estuary, listener: 'est' | 'admin' | 'publication', localAddress: string): Promise<Told> {
  const path = { est: '/.well-known/est/cacerts', admin: '/healthz', publication: '/ca/devices.cer' }[listener];
  const port = est.server.port(listener);
  if (listener !== 'publication')
    return call({ port, path, tls: { ca: est.root }, agent: new Agent({ keepAlive: false, localAddress }) }).then(told);
  return new Promise((resolve, reject) => {
    httpRequest({ host: '127.0.0.1', port, path, localAddress, agent: false }, (response) => {
      response.resume();
      resolve(told({ status: response.statusCode ?? 0, headers: response.headers }));
    })
      .on('error', reject)
      .end();
  });
}

const told = ({ status, headers }: { status: number; headers: Readonly<Record<string, unknown>> }): Told => ({
  status,
  retryAfter: headers['retry-after'],
  id: headers['x-request-id'],
  type: headers['content-type'],
});

test.each([
  ['requests_per_second_per_address', { requests_per_second_per_address: 1 }, '127.0.0.3', 200],
  ['requests_per_second', { requests_per_second: 1 }, '127.0.0.3', 503],
])('limits.%s bounds each listener: 503 with Retry-After', async (_, limits, other, othersStatus) => {
  const est = await start(limits);
  const types = {
    est: 'text/plain; charset=utf-8',
    admin: 'application/json; charset=utf-8',
    publication: 'text/plain; charset=utf-8',
  };
  for (const listener of ['est', 'admin', 'publication'] as const) {
    // Each request costs time, in which another one may come in; so there are many at once.
    const answers = await Promise.all(Array.from({ length: 30 }, () => get(est, listener, '127.0.0.2')));
    const refused = answers.filter(({ status }) => status === 503);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
    expect(refused.length).toBeGreaterThan(0);
    for (const { retryAfter, id, type } of refused) {
      expect(retryAfter).toMatch(/^[1-9]\d*$/);
      expect(id).toMatch(/^[0-9a-f-]{36}$/);
      expect(type).toBe(types[listener]);
    }
    const others = await Promise.all(
      Array.from({ length: othersStatus === 503 ? 30 : 1 }, () => get(est, listener, other)),
    );
    expect(others.map(({ status }) => status)).toContain(othersStatus);
  }
});

test('more than the server can bear is refused with 503 and Retry-After, the rest is served, and /healthz answers', async () => {
  const est = await start({}, true);
  const key = makeKey();
  const device: ClientIdentity = await est.enrolled(key);
  const wire = onTheWire(simpleCsr(key, 'device-1'));
  const agent = new Agent({ keepAlive: true, maxSockets: 400 });
  const renew = () => est.enroll(wire, { client: device, path: 'simplereenroll', agent });
  // The handshakes are no part of it.
  for (let i = 0; i < 400; i += 50)
    await Promise.all(
      Array.from({ length: Math.min(i + 50, 400) }, () => est.est('cacerts', { client: device, agent })),
    );
  const memory = rssMiB(est.server.pid);
  const statuses = new Map<number, number>();
  let health = 0;
  for (let round = 0; round < 2; round++) {
    const flood = Array.from({ length: 400 }, async () => {
      const answer = await renew();
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 503) expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    });
    health = (await get(est, 'admin', '127.0.0.2')).status;
    await Promise.all(flood);
  }
  agent.destroy();
  expect(health).toBe(200);
  expect([...statuses.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(statuses.get(200)).toBeGreaterThan(200);
  expect(rssMiB(est.server.pid)).toBeLessThan(memory + 300);
  // When the flood is over, everybody is served.
  expect((await renew()).status).toBe(200);
});
