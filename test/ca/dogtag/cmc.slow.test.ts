import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildControl, controlsNamed } from '../../../src/pki/cmc/controls.ts';
import { parseSignedData } from '../../../src/pki/cms/cms.ts';
import { attribute, buildCsr, makeKey, name, simpleCsr, type TestKey } from '../../support/csr.ts';
import { utf8String } from '../../../src/pki/der/der.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { crm, pendTokenOf, postCmc, requestBy, tcr } from '../../support/cmc.ts';
import { asks, atOnce, exchange } from './cmc-exchange.ts';
import { DogtagStandIn, type StandInServer } from '../../support/dogtag-stand-in/index.ts';
import { caSection, Estuary, section, type ClientIdentity } from '../../support/estuary.ts';
import { caInUse } from '../../support/queued-requests.ts';
import { buildCrmf } from '../../pki/cmc/samples.ts';
import { pause } from '../../support/until.ts';

const CMC = 'POST /ca/ee/ca/profileSubmitCMCFull';

let standIn: DogtagStandIn;
let server: StandInServer;
let estuary: Estuary;
beforeAll(async () => {
  standIn = await DogtagStandIn.start();
  ({ server } = standIn);
  estuary = await start('caFullCMCUserCert');
});
afterAll(async () => {
  await estuary.stop();
  await standIn.stop();
});
beforeEach(() => void (server.faults = {}));

function start(cmc_profile: string): Promise<Estuary> {
  return Estuary.start({
    configure: (config, dir) => {
      standIn.configure(config, { profile: 'estuaryAuto', cmc_profile, timeout: 60 });
      standIn.trust(config, dir);
      caSection(config)['approval'] = 'auto';
      section(config, 'est')['retry_after'] = 1;
    },
  });
}

describe('fullcmc at a CA behind Dogtag', () => {
  test("the request goes to Dogtag's CMC profile as the agent's; ids and nonces come back as the client's", async () => {
    const client = await estuary.enrolled(makeKey(), 'cmc-1');
    const key = makeKey();
    const nonce = randomBytes(16);
    const before = server.count(CMC);
    const reply = await exchange(
      estuary,
      client,
      await asks(client, 'cmc-1', key, 77, [
        buildControl(5, 'senderNonce', nonce),
        buildControl(6, 'transactionId', '123456'),
      ]),
    );
    expect(reply).toMatchObject({ http: 200, status: { status: 'success', bodyList: [77] } });
    expect(reply.certificates.map(({ spki }) => spki.equals(key.spki))).toEqual([true]);
    expect(controlsNamed(reply.controls, 'recipientNonce')[0]?.value.equals(nonce)).toBe(true);
    expect(controlsNamed(reply.controls, 'transactionId')[0]?.value).toBe('123456');
    expect(server.count(CMC) - before).toBe(1);
    const serial = reply.certificates[0]?.serialNumber ?? '';
    expect((await estuary.admin('GET', `/admin/certificates/${serial}?ca=devices`)).status).toBe(200);
  });

  test('a CRMF request goes on as it came, and nothing else is made of it here', async () => {
    const client = await estuary.enrolled(makeKey(), 'cmc-crmf');
    const key = makeKey();
    const before = server.count(CMC);
    await postCmc(
      estuary,
      await requestBy(client, { reqSequence: [crm(1, buildCrmf(key, { subject: 'CN=cmc-crmf' }))] }),
      client,
    );
    expect(server.count(CMC) - before).toBe(1);
  });

  test.each([
    [
      'nobody of this CA signs',
      async (_client: ClientIdentity, key: TestKey) =>
        requestBy(await stranger(), { reqSequence: [tcr(1, simpleCsr(key, 'cmc-2'))] }),
    ],
    ['another subject is asked for', (client: ClientIdentity, key: TestKey) => asks(client, 'somebody-else', key)],
  ])('%s: refused here, and Dogtag never sees it', async (_what, message) => {
    const client = await estuary.enrolled(makeKey(), 'cmc-2');
    const before = server.count(CMC);
    const answer = await postCmc(estuary, await message(client, makeKey()), client);
    expect([400, 401, 403]).toContain(answer.status);
    expect(server.count(CMC)).toBe(before);
  });

  test('what Dogtag rejects is a failure that names the body part and says why', async () => {
    const noCn = name(attribute('2.5.4.10', utf8String('NoCN')));
    standIn.state.requireCn = false;
    const key = makeKey();
    const { token } = await estuary.otp();
    const enrolled = await estuary.enroll(buildCsr(key, { subject: noCn }).toString('base64'), { password: token });
    standIn.state.requireCn = true;
    const [der] = parseSignedData(Buffer.from(enrolled.text, 'base64')).certificates;
    if (der === undefined) throw new Error('no certificate');
    const client = { cert: encodePem('CERTIFICATE', der), key: key.pem };
    const reply = await exchange(
      estuary,
      client,
      await requestBy(client, { reqSequence: [tcr(9, buildCsr(makeKey(), { subject: noCn }))] }),
    );
    expect(reply.http).toBe(403);
    expect(reply.status).toMatchObject({ status: 'failed', bodyList: [9] });
    expect(reply.status?.statusString).toMatch(/Subject Name Not Matched/);
  });

  test('while Dogtag is down: 503', async () => {
    const client = await estuary.enrolled(makeKey(), 'cmc-down');
    server.faults.undeployed = true;
    expect((await postCmc(estuary, await asks(client, 'cmc-down', makeKey()), client)).status).toBe(503);
    server.faults.undeployed = false;
    await caInUse(estuary);
  });

  test('an answer that is lost is found again by queryPending', async () => {
    const client = await estuary.enrolled(makeKey(), 'cmc-lost');
    const key = makeKey();
    server.faults.cutAfterSubmission = true;
    const before = server.count(CMC);
    const first = await exchange(estuary, client, await asks(client, 'cmc-lost', key));
    server.faults.cutAfterSubmission = false;
    expect(first.status?.status).toBe('pending');
    const pendToken = pendTokenOf({ statuses: first.status === undefined ? [] : [first.status] });
    let reply = first;
    for (let polls = 0; polls < 150 && reply.status?.status === 'pending'; polls++) {
      await pause(400);
      reply = await exchange(
        estuary,
        client,
        await requestBy(client, { controlSequence: [buildControl(3, 'queryPending', pendToken)] }),
      );
    }
    expect(reply.certificates.map(({ spki }) => spki.equals(key.spki))).toEqual([true]);
    expect(server.count(CMC) - before).toBe(1);
  });

  test('20 concurrent requests: each client gets its own certificate', async () => {
    const clients = [];
    for (let i = 0; i < 20; i++) {
      const cn = `cmc-many-${i}`;
      clients.push({ cn, client: await estuary.enrolled(makeKey(), cn), key: makeKey() });
    }
    expect(new Set(await atOnce(estuary, clients))).toEqual(new Set(['success, its own']));
  });
});

test('one request at a time is under way at the CA', async () => {
  const estuary = await start('caFullCMCUserCert');
  try {
    const clients = [];
    for (let i = 0; i < 12; i++) {
      const cn = `cmc-queue-${i}`;
      clients.push({ cn, client: await estuary.enrolled(makeKey(), cn), key: makeKey() });
    }
    server.faults.delay = 50;
    server.mostCmcAtOnce = 0;
    expect(new Set(await atOnce(estuary, clients))).toEqual(new Set(['success, its own']));
    expect(server.mostCmcAtOnce).toBe(1);
  } finally {
    delete server.faults.delay;
    await estuary.stop();
  }
});

async function stranger(): Promise<ClientIdentity> {
  const other = await Estuary.start();
  try {
    return await other.enrolled(makeKey(), 'cmc-2');
  } finally {
    await other.stop();
  }
}
