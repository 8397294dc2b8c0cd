/** CRLs of clients' issuers that expire, disappear or cannot be used cost only what they speak of. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeCa, makeClient, makeCrl, type Issuer } from '../support/certificates.ts';
import { runAny } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { call } from '../support/https.ts';
import { NODE, SERVER, untilLogged } from '../support/server-process.ts';

const key = makeKey();
const [east, west] = [await makeCa('CN=East'), await makeCa('CN=West')];
const [ofEast, ofWest] = [await makeClient('CN=e', east, { serial: '0e' }), await makeClient('CN=w', west)];
let estuary: Estuary;
let own: ClientIdentity;
const file = (name: string): string => join(estuary.dir, name);
const identity = (of: Issuer): ClientIdentity => ({ cert: encodePem('CERTIFICATE', of.der), key: pkcs8Pem(of.keys) });
const statuses = (): Promise<string[]> =>
  Promise.all(
    [identity(ofEast), identity(ofWest), own].map(async (client) => {
      const { status, body } = await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { client });
      return status === 401 ? `401 ${body.toString()}` : String(status);
    }),
  );
const reload = async (): Promise<string> => {
  const { status, json } = await estuary.admin('POST', '/admin/reload');
  expect(status).toBe(200);
  return JSON.stringify(json['faults']);
};
const check = () => runAny(NODE, [SERVER, '--config', file('est.toml'), '--check']);
const UNKNOWN = expect.stringContaining('401 client certificate revocation status unknown') as string;

beforeAll(async () => {
  estuary = await Estuary.start();
  own = await estuary.enrolled(key);
  await estuary.server.stop();
  mkdirSync(file('crls'));
  writeFileSync(file('tls/foreign.pem'), [east, west].map(({ der }) => encodePem('CERTIFICATE', der)).join(''));
  writeFileSync(file('crls/README'), 'not a CRL');
  symlinkSync('nowhere', file('crls/dangling'));
  writeFileSync(file('crls/east.crl'), await makeCrl(east));
  writeFileSync(file('crls/west.crl'), 'damaged');
  estuary.reconfigure((config, dir) => {
    const clientAuth = section(config, 'tls', 'client_auth');
    const anchors = ['tls/client-anchors.pem', 'tls/foreign.pem'].map((name) => readFileSync(join(dir, name), 'utf8'));
    writeFileSync(join(dir, 'tls/all.pem'), anchors.join(''));
    const jwt = { issuer: 'https://127.0.0.1:1', audience: 'est', jwks_url: 'https://127.0.0.1:1/keys' };
    Object.assign(section(config, 'auth'), { jwt });
    Object.assign(clientAuth, { trust_anchors: 'tls/all.pem', crl: 'crls' });
  });
  await estuary.restart();
});
afterAll(() => estuary.stop());

test('after a start with a damaged CRL, only anchors without a valid CRL are rejected, and CAs of this server are not', async () => {
  expect(await statuses()).toEqual(['200', UNKNOWN, '200']);
  const { msg } = await untilLogged(estuary.server, { key: 'tls.client_auth.crl' });
  expect(msg).toMatch(/crls\/west\.crl contains no CRL/);
  expect(await check()).toMatchObject({
    code: 2,
    output: expect.stringMatching(/client_auth\.crl: .*west\.crl/) as string,
  });
});

test('a corrected CRL counts at a reload, and with one that is damaged later those in force stay', async () => {
  writeFileSync(file('crls/west.crl'), await makeCrl(west));
  expect(await reload()).toBe('[]');
  expect(await statuses()).toEqual(['200', '200', '200']);
  writeFileSync(file('crls/east.crl'), await makeCrl(await makeCa('CN=East', { slot: 'impostor' })));
  writeFileSync(file('crls/west.crl'), 'damaged');
  const faults = await reload();
  for (const name of ['west.crl contains no CRL', 'east.crl: no certificate']) expect(faults).toContain(name);
  expect(await statuses()).toEqual(['200', '200', '200']);
});

test('a folder that cannot be read keeps the CRLs in force too', async () => {
  renameSync(file('crls'), file('away'));
  expect(await reload()).toContain('cannot read');
  expect(await statuses()).toEqual(['200', '200', '200']);
  renameSync(file('away'), file('crls'));
});

test('certificates of an issuer fail when its CRL has expired, or is missing', async () => {
  writeFileSync(file('crls/east.crl'), await makeCrl(east, { nextUpdate: Date.now() - 1000 }));
  rmSync(file('crls/west.crl'));
  const faults = await reload();
  for (const name of ['the CRL of \\"CN=East\\" expired on', 'there is no CRL of \\"CN=West\\"'])
    expect(faults).toContain(name);
  expect(await statuses()).toEqual([UNKNOWN, UNKNOWN, '200']);
  expect(await check()).toMatchObject({ code: 0, output: expect.stringContaining('expired on') as string });
});

test('metrics, health, log and doctor report what fails', async () => {
  const metrics = async (): Promise<string> =>
    (
      await call({
        port: estuary.server.port('admin'),
        path: '/metrics',
        tls: { ca: estuary.root },
        headers: { Authorization: `Bearer ${estuary.adminToken}` },
      })
    ).body.toString();
  expect(await metrics()).toContain('estuary_client_crl_expiry_timestamp_seconds{issuer="CN=West"} 0');
  expect(await metrics()).toContain('estuary_dependency_up{dependency="jwks",ca=""} 0');
  const { status, json } = await estuary.admin('GET', '/readyz');
  expect([status, json]).toMatchObject([200, { status: 'degraded', parts: { client_crl: 'degraded', jwks: 'down' } }]);
  await untilLogged(estuary.server, { part: 'client_crl', health: 'degraded' });
  const { health } = (await estuary.admin('GET', '/admin/overview')).json;
  expect(health).toMatchObject({
    faults: expect.arrayContaining([{ key: 'crl', message: 'there is no CRL of "CN=West"' }]) as unknown,
    dependencies: expect.arrayContaining([{ name: 'jwks', ca: null, up: false }]) as unknown,
  });
  const doctor = await runAny(NODE, [SERVER, 'doctor', '--config', file('est.toml')]);
  expect(doctor.code).toBe(1);
  expect(doctor.output).toMatch(/^failed +file: tls\.client_auth\.crl: the CRL of "CN=East" expired on /m);
  writeFileSync(file('crls/east.crl'), await makeCrl(east));
  writeFileSync(file('crls/west.crl'), await makeCrl(west));
  expect(await reload()).toBe('[]');
  expect((await estuary.admin('GET', '/readyz')).json['parts']).not.toHaveProperty('client_crl');
  await untilLogged(estuary.server, { part: 'client_crl', msg: 'a component is healthy again' });
});
