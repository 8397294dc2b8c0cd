/** Nodes on one PostgreSQL: each event is sent by one of them, and campaigns, holds and releases count at all. */
import { createHmac, randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { type ClientIdentity, Estuary } from '../support/estuary.ts';
import { type PostgresCluster, sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';
import { until } from '../support/until.ts';

const SECRET = 'a secret of 32 octets for the MAC';
const serialOf = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber.toLowerCase();

describe.skipIf(!requires('postgres'))('two nodes on one PostgreSQL', () => {
  let cluster: PostgresCluster;
  let url: string;
  let receiver: Server | undefined;
  const nodes: Estuary[] = [];
  /** The subjects of the events, in the order of their arrival. */
  const received: { readonly id: string; readonly subject: string; readonly type: string }[] = [];
  const key = makeKey();

  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    const lookupKey = randomBytes(32);
    for (const name of ['node-1', 'node-2']) {
      const pki = nodes[0] === undefined ? {} : { pki: nodes[0].dir };
      const configure: NonNullable<Parameters<typeof Estuary.start>[0]>['configure'] = (config, dir) => {
        receiver ??= listen(dir);
        writeFileSync(join(dir, 'hook.key'), SECRET);
        const { port } = receiver.address() as AddressInfo;
        const hook = {
          name: 'hook',
          kind: 'webhook',
          url: `https://localhost:${port}/`,
          trust_anchors: 'ca/root.pem',
          timeout: 60,
        };
        const events = ['certificate.issued', 'certificate.revoked'];
        config['notifications'] = [{ ...hook, events, signature_key_file: 'hook.key' }];
      };
      nodes.push(await Estuary.start(withStoreIn({ configure, ...pki }, url, name, lookupKey)));
    }
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
    receiver?.closeAllConnections();
    receiver?.close();
    await cluster.dropDatabase(url);
  });

  function listen(dir: string): Server {
    const [tlsKey, cert] = ['tls/server.key', 'tls/server.pem'].map((name) => readFileSync(join(dir, name)));
    return createServer({ key: tlsKey, cert }, (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      request.on('end', () => {
        const [, seconds, mac] =
          /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(request.headers['x-estuary-signature'])) ?? [];
        const isGenuine =
          createHmac('sha256', SECRET)
            .update(`${seconds ?? ''}.${body}`)
            .digest('hex') === mac;
        if (isGenuine) received.push(JSON.parse(body) as (typeof received)[number]);
        response.writeHead(isGenuine ? 204 : 403).end();
      });
    }).listen(0);
  }

  const at = (n: number): Estuary => {
    const node = nodes[n];
    if (node === undefined) throw new Error('no node');
    return node;
  };
  const issued = (serial: string) =>
    received.filter(({ type, subject }) => type === 'certificate.issued' && subject === serial);

  test('each event of both nodes is sent once', async () => {
    const serials: string[] = [];
    for (let n = 0; n < 10; n++) serials.push(serialOf(await at(n % 2).enrolled(key, `device-${n}`)));
    await until('all events', () => serials.every((serial) => issued(serial).length > 0), 60_000);
    expect(serials.map((serial) => issued(serial).length)).toEqual(serials.map(() => 1));
    expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
  });

  test('a window of a campaign, a hold and its release count at the other node', async () => {
    const who = await at(0).enrolled(key, 'held');
    const renew = () => at(1).enroll(onTheWire(simpleCsr(key, 'held')), { path: 'simplereenroll', client: who });
    const { raw, serialNumber } = new X509Certificate(who.cert);
    const aki = parseCertificate(raw).authorityKeyIdentifier ?? Buffer.alloc(0);
    const id = `${aki.toString('base64url')}.${Buffer.from(serialNumber, 'hex').toString('base64url')}`;
    const by = Math.floor(Date.now() / 1000) * 1000 + 3_600_000;
    const body = { filter: { serial: serialOf(who) }, by: new Date(by).toISOString() };
    const started = await at(0).admin('POST', '/admin/renewals', body);
    expect(started.status).toBe(201);
    const { text } = await at(1).est(`renewal-info/${id}`);
    expect(
      Date.parse((JSON.parse(text) as { suggestedWindow: { end: string } }).suggestedWindow.end),
    ).toBeLessThanOrEqual(by);
    const call = (action: string, more?: object) =>
      at(0).admin('POST', `/admin/certificates/${serialOf(who)}/${action}?ca=devices`, more);
    expect((await call('revoke', { reason: 'certificateHold' })).status).toBe(200);
    expect((await renew()).status).toBe(401);
    expect((await at(1).est(`renewal-info/${id}`)).status).toBe(404);
    expect((await call('release')).status).toBe(200);
    expect((await renew()).status).toBe(200);
    const progress = await at(1).admin('GET', `/admin/renewals/${String(started.json['id'])}`);
    expect(progress.json).toMatchObject({ total: 1, replaced: 1 });
  });

  test('after kill -9 of a node, the other one sends the events of both', async () => {
    for (const victim of [0, 1]) {
      const serial = serialOf(await at(victim).enrolled(key, `victim-${victim}`));
      at(victim).server.signal('SIGKILL');
      await at(victim).server.exited;
      await until('the event of the killed node', () => issued(serial).length > 0, 90_000);
      const other = serialOf(await at(1 - victim).enrolled(key, `after-${victim}`));
      await until('an event of the other node', () => issued(other).length > 0, 90_000);
      await at(victim).restart();
    }
  });
});
