/** What the history of a registered device shows at the built server, for labels with and without `devices = "required"`. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { encodeReqSequence } from '../../src/pki/cmc/pki-data.ts';
import {
  certificateOf,
  exchange,
  fullRequest,
  IDENTIFICATION,
  ownKeyIdentifier,
  postCmc,
  requestBy,
  requestedKey,
  tcr,
  withParticipants,
} from '../support/cmc.ts';
import { buildCsr, commonName, extensionRequest, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import { createIdentityProof } from '../support/cmc-secrets.ts';

const setting = withParticipants((config) => {
  section(config, 'est')['fullcmc_require_mtls'] = false;
  caSection(config, 1)['devices'] = 'required';
});
const LABELS = [
  ['devices = "off"', ''],
  ['devices = "required"', 'lab/'],
] as const;
let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({ configure: setting.configure });
});
afterAll(() => estuary.stop());

/** A registered device with a certificate of the label. */
async function enrolled(id: string, path: string): Promise<ClientIdentity & { readonly serial: string }> {
  expect((await estuary.admin('POST', '/admin/devices', { id })).status).toBe(201);
  const { token } = await estuary.otp({ client_id: id });
  const key = makeKey();
  const { status, text } = await estuary.enroll(onTheWire(simpleCsr(key, id, [])), {
    password: token,
    path: `${path}simpleenroll`,
  });
  expect([status, status === 200 ? '' : text]).toEqual([200, '']);
  const { certificates } = await historyOf(id);
  expect(certificates).toEqual([expect.objectContaining({ device: id, subject: `CN=${id}` })]);
  const serial = certificates[0]?.['serial'] as string;
  const { json } = await estuary.admin('GET', `/admin/certificates/${serial}`);
  return { cert: json['pem'] as string, key: key.pem, serial };
}

async function historyOf(id: string) {
  const { json } = await estuary.admin('GET', `/admin/devices/${encodeURIComponent(id)}`);
  const other = (await estuary.admin('GET', `/admin/history?device=${encodeURIComponent(id)}`)).json;
  expect([other['certificates'], other['events']]).toEqual([json['certificates'], json['events']]);
  return { certificates: itemsOf({ items: json['certificates'] }), events: itemsOf({ items: json['events'] }) };
}

const latest = async (id: string) => {
  const { type, outcome, subject, detail } = (await historyOf(id)).events[0] ?? {};
  return { type, outcome, subject, detail };
};

const basic = (name: string) => `Basic ${Buffer.from(`${name}:wrong`).toString('base64')}`;
const renewal = (id: string) => onTheWire(simpleCsr(makeKey(), id, []));

describe.each(LABELS)('%s: the history of a device shows', (_, path) => {
  const named = (what: string) => `${path.replace('/', '-')}${what}`;

  test('its certificates, also those of its renewals, which the filter `device` finds too', async () => {
    const id = named('renewed');
    const client = await enrolled(id, path);
    expect((await estuary.enroll(renewal(id), { client, path: `${path}simplereenroll` })).status).toBe(200);
    const { certificates } = await historyOf(id);
    expect(certificates.map(({ device, serial }) => [device, serial === client.serial])).toEqual([
      [id, false],
      [id, true],
    ]);
    const found = await estuary.admin('GET', `/admin/certificates?device=${id}`);
    expect(itemsOf(found.json)).toHaveLength(2);
  });

  test('wrong passwords', async () => {
    const id = named('guessed');
    await enrolled(id, path);
    const headers = { Authorization: basic(id) };
    const answer = await estuary.enroll(renewal(id), { headers, path: `${path}simpleenroll` });
    expect(answer.status).toBe(401);
    expect(await latest(id)).toMatchObject({ type: 'auth.otp', outcome: 'failure', subject: id });
  });

  test('rejected renewals, by EST and by full CMC', async () => {
    const id = named('rejected');
    const client = await enrolled(id, path);
    const other = await estuary.enroll(renewal('other'), { client, path: `${path}simplereenroll` });
    expect(other.status).toBe(403);
    expect(await latest(id)).toMatchObject({
      type: 'certificate.denied',
      detail: expect.stringMatching(/^simplereenroll: /) as string,
    });
    const data = { reqSequence: [tcr(1, simpleCsr(makeKey(), 'other', []))] };
    const cmc = `${path}fullcmc`;
    expect((await postCmc(estuary, await requestBy(client, data), client, cmc)).status).toBe(403);
    expect(await latest(id)).toMatchObject({
      type: 'certificate.denied',
      detail: expect.stringMatching(/^fullcmc: /) as string,
    });
    const serial = `${client.serial}?ca=${path === '' ? 'devices' : 'lab'}`;
    const revoked = await estuary.admin('POST', `/admin/certificates/${serial.replace('?', '/revoke?')}`, {});
    expect([revoked.status, await latest(id)]).toEqual([200, expect.objectContaining({ type: 'certificate.revoked' })]);
    expect((await estuary.enroll(renewal(id), { client, path: `${path}simplereenroll` })).status).toBe(401);
    expect(await latest(id)).toMatchObject({ type: 'auth.mtls', outcome: 'failure', subject: `CN=${id}` });
    // Without the certificate in the TLS handshake: the message alone names it.
    expect((await postCmc(estuary, await requestBy(client, data), undefined, cmc)).status).toBe(401);
    expect(await latest(id)).toMatchObject({ type: 'auth.cmc', outcome: 'failure' });
  });

  test('revocations by full CMC', async () => {
    const id = named('revoked');
    const client = await enrolled(id, path);
    const { issuer, serialNumber } = certificateOf(client);
    const control = buildControl(7, 'revokeRequest', { issuer, serialNumber, reason: 'superseded' });
    const message = await requestBy(client, { controlSequence: [control] });
    expect((await postCmc(estuary, message, client, `${path}fullcmc`)).status).toBe(200);
    const { events, certificates } = await historyOf(id);
    expect(events[0]).toMatchObject({ type: 'certificate.revoked', revocation_reason: 'superseded' });
    expect(certificates[0]).toMatchObject({ status: 'revoked' });
  });
});

test('the history of a device shows wrong shared secrets of full CMC', async () => {
  expect((await estuary.admin('POST', '/admin/devices', { id: IDENTIFICATION })).status).toBe(201);
  const key = makeKey();
  const attributes = [extensionRequest(ownKeyIdentifier(key))];
  const reqSequence = [tcr(1, buildCsr(key, { subject: commonName('device-7'), attributes }))];
  const secret = { secret: Buffer.from('wrong'), identification: IDENTIFICATION };
  const controlSequence = [
    buildControl(102, 'senderNonce', randomBytes(16)),
    buildControl(111, 'identification', IDENTIFICATION),
    buildControl(112, 'identityProofV2', createIdentityProof(encodeReqSequence(reqSequence), secret)),
  ];
  const sent = await fullRequest({ controlSequence, reqSequence }, { signers: [requestedKey(key)] });
  expect((await exchange(estuary, sent)).status).toBe(401);
  expect(await latest(IDENTIFICATION)).toMatchObject({ type: 'auth.cmc', outcome: 'failure', subject: IDENTIFICATION });
});
