/** A chain of a remote CA that is unknown at the start, and becomes known later, without a reload. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postCmc, requestBy } from '../support/cmc.ts';
import { makeKey } from '../support/csr.ts';
import { certificatePem, Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { atEst, enrollAt, startFront } from '../support/upstream.ts';
import { until } from '../support/until.ts';

let upstream: Estuary;
let relay: TcpRelay;
let front: Estuary;
let holder: ClientIdentity;
const key = makeKey();

beforeAll(async () => {
  upstream = await Estuary.start();
  relay = await TcpRelay.start(upstream.server.port('est'));
  const { token } = await upstream.otp({ client_id: 'front', max_uses: 100 });
  front = await startFront({
    anchors: join(upstream.dir, 'ca/root.pem'),
    ca: atEst(relay.port, token),
    configure: (config) => {
      config['cmc'] = { certificate: 'tls/server.pem', private_key: 'tls/server.key' };
    },
  });
  holder = { cert: certificatePem(await enrollAt(front, key, 'front')), key: key.pem };
});
afterAll(async () => {
  await front.stop();
  await relay.die();
  await upstream.stop();
});

/** Starts again without the kept chain, while the upstream CA does not answer. */
async function restartWithoutChain(): Promise<void> {
  await front.server.stop();
  await relay.die();
  const db = new Database(join(front.dir, 'data/est.db'));
  db.prepare("DELETE FROM presented_path WHERE leaf LIKE 'chain of %'").run();
  db.close();
  await front.restart();
}

const renew = async (): Promise<number> =>
  (await enrollAt(front, key, 'front', { client: holder, path: 'edge/simplereenroll' })).status;

test('certificates of the label get 503, not 401, also for full CMC, until the chain is known', async () => {
  await restartWithoutChain();
  expect(await renew()).toBe(503);
  expect((await enrollAt(front, key, 'front', { client: holder })).status).toBe(503);
  expect((await postCmc(front, await requestBy(holder, {}), holder, 'edge/fullcmc')).status).toBe(503);
  await relay.revive();
  await until('the certificate renews', async () => (await renew()) === 200);
});

test('the mode required accepts its certificates in handshakes once the chain is known', async () => {
  front.reconfigure((config) => void (section(config, 'tls', 'client_auth')['mode'] = 'required'));
  await restartWithoutChain();
  const reached = (): Promise<boolean> =>
    front.est('devices/cacerts', { client: holder }).then(
      ({ status }) => status === 200,
      () => false,
    );
  expect(await reached()).toBe(false);
  await relay.revive();
  await until('a handshake succeeds', reached);
});
