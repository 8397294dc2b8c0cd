/** Which credentials count at which label, and who may poll a queued request. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatePem, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { usePreSharedSecret } from '../support/server-key.ts';

const NOT_ACCEPTED = 'client certificate not accepted by this CA';
const maker = await makeCa('CN=Maker');
/** Of the name of the CA for devices, and with another key; its certificates name no key, so that OpenSSL would take them for the CA's. */
const former = await makeCa('CN=Quickstart Devices CA,O=Estuary quickstart', { slot: 'former' });
const key = makeKey();
const wire = onTheWire(simpleCsr(key, 'device-1'));
const pem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);

let estuary: Estuary;
type Holder = 'devices' | 'lab' | 'maker' | 'former';
/** All are CN=device-1. */
let clients: Readonly<Record<Holder, ClientIdentity>>;

async function deviceOf(ca: Issuer): Promise<ClientIdentity> {
  const leaf = await makeClient('CN=device-1', ca);
  return { cert: pem(leaf), key: pkcs8Pem(leaf.keys) };
}

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      appendFileSync(join(dir, 'tls/client-anchors.pem'), pem(maker));
      usePreSharedSecret(config, dir);
      const lab = caSection(config, 1);
      lab['approval'] = 'manual';
      lab['client_issuers'] = ['any'];
      section(lab, 'auth')['methods'] = ['mtls'];
    },
  });
  const devices = await estuary.enrolled(key);
  const ask = () => estuary.enroll(wire, { path: 'lab/simpleenroll', client: devices });
  expect((await ask()).status).toBe(202);
  await approve(await latest());
  const lab = { cert: certificatePem(await ask()), key: key.pem };
  clients = { devices, lab, maker: await deviceOf(maker), former: await deviceOf(former) };
});
afterAll(() => estuary.stop());

async function latest(): Promise<Record<string, unknown>> {
  const request = itemsOf((await estuary.admin('GET', '/admin/requests?status=pending')).json).at(-1);
  if (request === undefined) throw new Error('nothing is queued');
  return request;
}

async function approve({ id }: Record<string, unknown>): Promise<void> {
  expect((await estuary.admin('POST', `/admin/requests/${String(id)}/approve`, {})).status).toBe(200);
}

describe('the default client_issuers of a label', () => {
  test.each<[string, Holder, number, string]>([
    ['simpleenroll', 'devices', 200, ''],
    ['simpleenroll', 'maker', 200, ''],
    ['simpleenroll', 'lab', 403, NOT_ACCEPTED],
    ['simpleenroll', 'former', 401, 'certificate signed by unknown authority'],
    ['serverkeygen', 'maker', 200, ''],
    ['serverkeygen', 'lab', 403, NOT_ACCEPTED],
    ['serverkeygen', 'former', 401, 'certificate signed by unknown authority'],
    ['simplereenroll', 'devices', 200, ''],
    ['simplereenroll', 'lab', 403, 'The client certificate was not issued by this CA, so it cannot be renewed here.'],
  ])('%s by a certificate of %s: %i', async (path, holder, status, text) => {
    const answer = await estuary.enroll(wire, { path, client: clients[holder] });
    expect([answer.status, status === 200 ? '' : answer.text]).toEqual([status, text]);
  });

  test.each<[Holder, number, string]>([
    ['lab', 403, NOT_ACCEPTED],
    ['former', 401, 'certificate signed by unknown authority'],
    ['maker', 400, ''],
    ['devices', 400, ''],
  ])('fullcmc by a certificate of %s: %i', async (holder, status, text) => {
    const headers = { 'Content-Type': 'application/pkcs7-mime' };
    const answer = await estuary.est('fullcmc', { client: clients[holder], body: 'MAA=', headers });
    expect([answer.status, status === 400 ? '' : answer.text]).toEqual([status, text]);
  });

  test('a certificate that is not accepted counts as none: the next credential is tried', async () => {
    for (const client of [clients.lab, clients.former]) {
      const { token } = await estuary.otp();
      expect((await estuary.enroll(wire, { client, password: token })).status).toBe(200);
      const wrong = await estuary.enroll(wire, { client, password: 'not-a-token-at-all-0' });
      expect([wrong.status, wrong.text]).toEqual([401, 'invalid OTP token']);
    }
  });

  test('the audit log names the issuer that was accepted or refused', async () => {
    for (const holder of ['maker', 'lab'] as const) await estuary.enroll(wire, { client: clients[holder] });
    const records = itemsOf((await estuary.admin('GET', '/admin/audit?type=auth.mtls&limit=1000')).json);
    const named = records.map(
      ({ outcome, requester_issuer, ca }) => `${String(ca)} ${String(outcome)} ${String(requester_issuer)}`,
    );
    expect(named).toContain('devices success CN=Maker');
    expect(named).toContain('devices failure CN=Quickstart Lab CA,O=Estuary quickstart');
  });
});

describe('methods of a label', () => {
  test('a password is not looked at where only certificates count', async () => {
    const { id, token } = await estuary.otp();
    const answer = await estuary.enroll(wire, { path: 'lab/simpleenroll', password: token });
    expect([answer.status, answer.text]).toEqual([401, 'client certificate required']);
    expect((await estuary.admin('GET', `/admin/otp/${id}`)).json).toMatchObject({ uses: 0 });
  });
});

describe('what one requester queued, no other gets', () => {
  test('neither certificate nor private key go to another CA’s holder of the same subject', async () => {
    const path = 'lab/serverkeygen';
    const [one, other] = [clients.devices, clients.maker];
    expect((await estuary.enroll(wire, { path, client: one })).status).toBe(202);
    const own = await latest();
    expect(own).toMatchObject({
      requester: 'CN=device-1',
      requester_issuer: 'CN=Quickstart Devices CA,O=Estuary quickstart',
      requester_sans: [],
    });
    await approve(own);
    expect((await estuary.enroll(wire, { path, client: other })).status).toBe(202);
    expect(await latest()).toMatchObject({ requester: 'CN=device-1', requester_issuer: 'CN=Maker' });
    const answer = await estuary.enroll(wire, { path, client: one });
    expect([answer.status, answer.text.includes('application/pkcs8')]).toEqual([200, true]);
  });
});
