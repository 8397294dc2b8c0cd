/** RFC 5272 §6.13: requests that wait for an administrator. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { encodeReqSequence, type TaggedAttribute } from '../../src/pki/cmc/pki-data.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import {
  certificateOf,
  crm,
  exchange,
  fullRequest,
  IDENTIFICATION,
  inShort,
  issuedBy,
  issuedOutside,
  ownKeyIdentifier,
  pendTokenOf,
  readResponse,
  requestBy,
  requestedKey,
  SECRET,
  tcr,
  withParticipants,
  type CmcReply,
} from '../support/cmc.ts';
import { buildCsr, commonName, extensionRequest, makeKey, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, type ClientIdentity } from '../support/estuary.ts';
import { createIdentityProof } from '../support/cmc-secrets.ts';

const setting = withParticipants((config) => {
  caSection(config)['approval'] = 'manual';
});
const DEVICE = ['keyUsage=critical,digitalSignature', 'extendedKeyUsage=clientAuth', 'subjectKeyIdentifier=hash'];
let server: Estuary;
let device: ClientIdentity;
let other: ClientIdentity;

beforeAll(async () => {
  server = await Estuary.start({ configure: setting.configure });
  device = issuedOutside(server, 'issuing', makeKey(), '/CN=device-1', DEVICE);
  other = issuedOutside(server, 'issuing', makeKey(), '/CN=device-2', DEVICE);
});
afterAll(() => server.stop());

const nonce = (): TaggedAttribute => buildControl(102, 'senderNonce', randomBytes(16));

function query(client: ClientIdentity, token: Buffer): Promise<CmcReply> {
  const controlSequence = [nonce(), buildControl(5, 'queryPending', token)];
  return exchange(server, requestBy(client, { controlSequence }), client);
}

/** Approves or rejects the request with this pendToken. */
async function decide(token: Buffer, decision: 'approve' | 'reject'): Promise<void> {
  const id = token.toString('latin1');
  const body = decision === 'reject' ? { reason: 'unknown device' } : {};
  expect((await server.admin('POST', `/admin/requests/${id}/${decision}`, body)).status).toBe(200);
}

const summary = (reply: CmcReply): unknown[] => [reply.status, ...inShort(reply)];

describe('RFC 5272 §6.13: pending', () => {
  test.each([
    ['PKCS#10', 'CERTIFICATE REQUEST'],
    ['CRMF', 'CRMF REQUEST'],
  ])('%s: pendInfo, then the certificate once it is approved, and the same ever after', async (format, label) => {
    const key = makeKey();
    const request =
      format === 'CRMF'
        ? crm(1, buildCrmf(key, { certReqId: 1, subject: 'CN=device-1' }))
        : tcr(1, simpleCsr(key, 'device-1'));
    const reply = await exchange(
      server,
      requestBy(device, { controlSequence: [nonce()], reqSequence: [request] }),
      device,
    );
    expect(summary(reply)).toEqual([200, 'pending [1]']);
    expect(issuedBy(reply)).toEqual([]);
    const token = pendTokenOf(reply);
    const record = await server.admin('GET', `/admin/requests/${token.toString('latin1')}`);
    expect(record.json).toMatchObject({
      operation: 'fullcmc',
      method: 'cmc',
      requester: 'CN=device-1',
      status: 'pending',
    });
    expect(record.json['csr']).toContain(`-----BEGIN ${label}-----`);

    const waiting = await query(device, token);
    expect(summary(waiting)).toEqual([200, 'pending [5]']);
    expect(pendTokenOf(waiting)).toEqual(token);

    await decide(token, 'approve');
    const issued = await query(device, token);
    expect(summary(issued)).toEqual([200, 'success [5]']);
    expect(issuedBy(issued).map(({ spki }) => spki)).toEqual([key.spki]);
    const again = await query(device, token);
    expect(issuedBy(again).map(({ der }) => der)).toEqual(issuedBy(issued).map(({ der }) => der));
  });

  test("somebody else's token: 403 badIdentity; an RA may ask", async () => {
    const der = requestBy(device, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] });
    const token = pendTokenOf(await exchange(server, der, device));
    expect(summary(await query(other, token))).toEqual([403, 'failed badIdentity [5]']);
    expect(summary(await query(setting.participants.ra, token))).toEqual([200, 'pending [5]']);
    await decide(token, 'approve');
    const issued = await query(setting.participants.ra, token);
    expect(summary(issued)).toEqual([200, 'success [5]']);
    const [certificate] = issuedBy(issued);
    const record = await server.admin('GET', `/admin/certificates/${certificate?.serialNumber}?ca=devices`);
    expect(record.json).toMatchObject({ requester: 'CN=device-1', method: 'cmc' });
  });

  test('a batch with an open query is no final answer: the same batch gets the certificate later', async () => {
    const { ra } = setting.participants;
    const key = makeKey();
    const first = requestBy(device, { reqSequence: [tcr(1, simpleCsr(key, 'device-1'))] });
    const token = pendTokenOf(await exchange(server, first, device));
    const inner = await requestBy(device, { controlSequence: [buildControl(5, 'queryPending', token)] });
    const batch = await requestBy(ra, {
      controlSequence: [nonce(), buildControl(101, 'batchRequests', [1])],
      cmsSequence: [{ bodyPartID: 1, contentInfo: inner }],
    });
    const send = async (): Promise<string[]> => {
      const [answer] = (await exchange(server, batch, ra)).inner;
      return answer === undefined ? [] : inShort(readResponse(server, answer));
    };
    expect(await send()).toEqual(['pending [5]']);
    await decide(token, 'approve');
    expect(await send()).toEqual(['success [5]']);
  });

  test('rejected: 403 badRequest with the reason', async () => {
    const der = requestBy(device, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] });
    const token = pendTokenOf(await exchange(server, der, device));
    await decide(token, 'reject');
    const reply = await query(device, token);
    expect(summary(reply)).toEqual([403, 'failed badRequest [5]']);
    expect(reply.statuses[0]?.statusString).toBe('unknown device');
  });

  test('a device without a certificate queries with the key that it asked for', async () => {
    const key = makeKey();
    const reqSequence = [
      tcr(1, buildCsr(key, { subject: commonName('device-7'), attributes: [extensionRequest(ownKeyIdentifier(key))] })),
    ];
    const shared = { secret: Buffer.from(SECRET), identification: IDENTIFICATION };
    const controlSequence = [
      buildControl(111, 'identification', IDENTIFICATION),
      buildControl(112, 'identityProofV2', createIdentityProof(encodeReqSequence(reqSequence), shared)),
    ];
    const signers = [requestedKey(key)];
    const reply = await exchange(server, fullRequest({ controlSequence, reqSequence }, { signers }), device);
    const token = pendTokenOf(reply);
    await decide(token, 'approve');
    const ask = (by: typeof signers) =>
      exchange(
        server,
        fullRequest({ controlSequence: [buildControl(5, 'queryPending', token)] }, { signers: by }),
        device,
      );
    expect(summary(await ask([requestedKey(makeKey())]))).toEqual([401, 'failed badIdentity [0]']);
    const issued = await ask(signers);
    expect(summary(issued)).toEqual([200, 'success [5]']);
    expect(issuedBy(issued).map(({ spki }) => spki)).toEqual([key.spki]);
  });

  test('partly done: success, pending and partial', async () => {
    const waiting = await exchange(
      server,
      requestBy(device, {
        controlSequence: [nonce(), buildControl(6, 'getCRL', { issuerName: certificateOf(device).issuer })],
        reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))],
      }),
      device,
    );
    expect(summary(waiting)).toEqual([200, 'success [6]', 'pending [1]', 'partial [0]']);
  });
});
