/** A CA behind a Dogtag stand-in that queues requests. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { dns, extKeyUsage, keyUsage, makeCertificate, subjectAltName } from '../../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../../support/csr.ts';
import { DogtagStandIn, type StandInServer } from '../../support/dogtag-stand-in/index.ts';
import { certificatesOf, Estuary, section } from '../../support/estuary.ts';
import type { Answer } from '../../support/https.ts';
import { auditOf, requestId, requestsOf, usesOf } from '../../support/queued-requests.ts';
import { pause, until } from '../../support/until.ts';

const SUBMIT = 'POST /ca/rest/certrequests';

let standIn: DogtagStandIn;
let server: StandInServer;
let estuary: Estuary;
beforeAll(async () => {
  standIn = await DogtagStandIn.start();
  ({ server } = standIn);
  estuary = await Estuary.start({
    configure: (config) => {
      standIn.configure(config, { profile: 'estuaryQueue', timeout: 10, check_interval: 1, lost_after: 1 });
      section(config, 'est')['retry_after'] = 1;
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  await standIn.stop();
});
beforeEach(() => void (server.faults = {}));

interface Device {
  readonly cn: string;
  readonly key: TestKey;
  readonly otp: { readonly id: string; readonly token: string };
  enroll(): Promise<Answer>;
  /** Polls until the answer is not 202. */
  final(): Promise<Answer>;
}

async function newDevice(cn: string): Promise<Device> {
  const key = makeKey();
  const otp = await estuary.otp();
  const enroll = (): Promise<Answer> =>
    estuary.enroll(onTheWire(simpleCsr(key, cn, [`${cn}.example`])), { password: otp.token });
  return {
    cn,
    key,
    otp,
    enroll,
    final: () =>
      until('an answer other than 202', async () => {
        const answer = await enroll();
        return answer.status !== 202 && answer;
      }),
  };
}

/** What the CA calls the request of a device. */
async function referenceOf(cn: string): Promise<string> {
  const { json } = await estuary.admin('GET', `/admin/requests/${await requestId(estuary, cn)}`);
  if (typeof json['ca_reference'] !== 'string') throw new Error('no reference');
  return json['ca_reference'];
}

const statusOf = async (cn: string): Promise<unknown> => (await requestsOf(estuary, cn))[0]?.['status'];
const issuedFor = (cn: string): number =>
  [...standIn.state.certificates.values()].filter(({ subject }) => subject === `CN=${cn}`).length;

function expectCertificate(answer: Answer, { key, cn }: Device): void {
  expect(answer.status).toBe(200);
  const [certificate] = certificatesOf(answer).map(parseCertificate);
  expect(certificate?.spki.equals(key.spki)).toBe(true);
  expect(issuedFor(cn)).toBe(1);
}

describe('a request that the CA queues', () => {
  test('is 202 with Retry-After until an agent approves it, then 200, and costs one use of the OTP', async () => {
    const device = await newDevice('approved');
    const first = await device.enroll();
    expect([first.status, first.headers['retry-after'], first.body.length]).toEqual([202, '1', 0]);
    expect(await usesOf(estuary, device.otp.id)).toBe(1);
    await pause(1100);
    expect((await device.enroll()).status).toBe(202);
    await standIn.decide('approve', await referenceOf(device.cn));
    expectCertificate(await device.final(), device);
    expect(await statusOf(device.cn)).toBe('issued');
    expectCertificate(await device.enroll(), device);
    expect(await usesOf(estuary, device.otp.id)).toBe(1);
    expect((await estuary.enroll(onTheWire(simpleCsr(makeKey(), 'else')), { password: device.otp.token })).status).toBe(
      401,
    );
  });

  test('is not lost because the directory is down', async () => {
    const device = await newDevice('directory');
    await device.enroll();
    server.faults.directoryDown = true;
    for (let polls = 0; polls < 5; polls++) {
      expect((await device.enroll()).status).toBe(202);
      await pause(600);
    }
    server.faults.directoryDown = false;
    await standIn.decide('approve', await referenceOf(device.cn));
    expectCertificate(await device.final(), device);
  });
});

describe('serverkeygen where the CA queues', () => {
  const generate = (cn: string, token: string): Promise<Answer> =>
    estuary.enroll(onTheWire(simpleCsr(makeKey(), cn)), { path: 'serverkeygen', password: token });

  test.each([
    ['its profile queues', false, 'The CA queues requests, so it cannot issue for a server-generated key.'],
    ['its agent may not read the profile', true, 'The CA does not return the configured profile.'],
  ])('%s: refused before a key is made, and nothing reaches the CA', async (_, forbidden, text) => {
    const otp = await estuary.otp();
    server.faults.profilesForbidden = forbidden;
    const before = server.count(SUBMIT);
    const answer = await generate('generated', otp.token);
    server.faults.profilesForbidden = false;
    expect([answer.status, answer.text.trim()]).toEqual([500, text]);
    expect(server.count(SUBMIT)).toBe(before);
    expect(await usesOf(estuary, otp.id)).toBe(0);
    const { json } = await estuary.admin('GET', '/admin/audit?type=key.generated');
    expect(json['items']).toEqual([]);
  });
});

test('what is issued beyond [ca.profile] does not leave; the audit log has it, and it is revoked at the CA', async () => {
  const device = await newDevice('beyond');
  await device.enroll();
  standIn.state.issueInstead = ({ publicKey }) =>
    makeCertificate({
      subject: 'CN=beyond',
      issuer: standIn.issuer,
      keys: { publicKey: publicKey.keyObject, privateKey: device.key.privateKey },
      serial: (standIn.state.certificates.size + 10).toString(16).padStart(2, '0'),
      notAfter: Date.now() + 86_400_000,
      extensions: [
        keyUsage('digitalSignature', 'keyEncipherment'),
        extKeyUsage(OID.clientAuth, OID.serverAuth, OID.codeSigning),
        subjectAltName(dns('beyond.example')),
      ],
    }).then(({ der }) => der);
  await standIn.decide('approve', await referenceOf(device.cn));
  const answer = await device.final();
  expect([answer.status, answer.text.trim()]).toEqual([
    500,
    'The CA issued a certificate that differs from the request.',
  ]);
  expect(await statusOf(device.cn)).toBe('failed');
  const failures = await auditOf(estuary, 'certificate.failed', await requestId(estuary, device.cn));
  expect(JSON.stringify(failures)).toMatch(
    /certificate [0-9a-f]+: its purposes include codeSigning.* revoked at the CA/,
  );
  const [issued] = [...standIn.state.certificates.values()].filter(({ subject }) => subject === 'CN=beyond');
  expect(issued?.revoked).toBe('Privilege_Withdrawn');
});
