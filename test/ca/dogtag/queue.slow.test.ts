/**
 * A CA behind a Dogtag stand-in that queues requests.
 *
 * Longer than other files: the ways of one request share a server, which takes seconds to start.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { dns, extKeyUsage, keyUsage, makeCertificate, subjectAltName } from '../../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../../support/csr.ts';
import { DogtagStandIn, type StandInServer } from '../../support/dogtag-stand-in/index.ts';
import { caSection, certificatesOf, Estuary, section } from '../../support/estuary.ts';
import type { Answer } from '../../support/https.ts';
import { auditOf, caInUse, requestId, requestsOf, usesOf } from '../../support/queued-requests.ts';
import { pause, until } from '../../support/until.ts';

const SUBMIT = 'POST /ca/rest/certrequests';
const POLL = 'GET /ca/rest/certrequests/';

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

  test('is 403 with the reason once it is rejected', async () => {
    const device = await newDevice('rejected');
    await device.enroll();
    const reference = await referenceOf(device.cn);
    await standIn.decide('reject', reference);
    const request = standIn.state.requests.get(Number(reference));
    if (request !== undefined) request.message = 'unknown device';
    const answer = await device.final();
    expect([answer.status, answer.text.trim()]).toEqual([403, 'unknown device']);
    expect((await device.enroll()).status).toBe(403);
    expect(await statusOf(device.cn)).toBe('rejected');
    expect(await auditOf(estuary, 'request.rejected', await requestId(estuary, device.cn))).toHaveLength(1);
  });

  test('fails for good once it is canceled', async () => {
    const device = await newDevice('canceled');
    await device.enroll();
    await standIn.decide('cancel', await referenceOf(device.cn));
    expect((await device.final()).status).toBe(403);
    expect((await device.enroll()).status).toBe(403);
    expect(await statusOf(device.cn)).toBe('failed');
    expect(
      [...standIn.state.requests.values()].filter(({ csr }) => csr.publicKey.spki.equals(device.key.spki)),
    ).toHaveLength(1);
  });

  test('is polled at the CA at most once in retry_after, however many ask', async () => {
    const device = await newDevice('busy');
    await device.enroll();
    const path = `${POLL}${await referenceOf(device.cn)}`;
    const started = Date.now();
    for (let round = 0; round < 8; round++) await Promise.all([device.enroll(), device.enroll(), device.enroll()]);
    const intervals = Math.floor((Date.now() - started) / 1000) + 1;
    expect(server.count(path)).toBeGreaterThan(0);
    expect(server.count(path)).toBeLessThanOrEqual(intervals);
  });

  test('is not for the administrator to decide', async () => {
    const device = await newDevice('elsewhere');
    await device.enroll();
    const id = await requestId(estuary, device.cn);
    for (const [action, body] of [
      ['approve', {}],
      ['reject', { reason: 'no' }],
    ] as const) {
      const { status, json } = await estuary.admin('POST', `/admin/requests/${id}/${action}`, body);
      expect([status, json['code']]).toEqual([409, 'DECIDED_AT_CA']);
    }
  });

  test('stays pending while the CA is down, and survives a restart of ours', async () => {
    const device = await newDevice('restart');
    await device.enroll();
    server.faults.undeployed = true;
    await pause(1100);
    expect((await device.enroll()).status).toBe(202);
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    server.faults.undeployed = false;
    await estuary.restart();
    await standIn.decide('approve', await referenceOf(device.cn));
    expectCertificate(await device.final(), device);
  });

  test('that the CA has lost is pending for lost_after, then fails; the OTP works again', async () => {
    const device = await newDevice('lost');
    await device.enroll();
    standIn.state.requests.delete(Number(await referenceOf(device.cn)));
    const answer = await device.final();
    expect(answer.status).toBe(503);
    expect(await statusOf(device.cn)).toBe('failed');
    expect(await usesOf(estuary, device.otp.id)).toBe(0);
    expect((await device.enroll()).status).toBe(202);
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

  test('for which the CA issues something else is an error that is audited, and nothing leaves', async () => {
    const device = await newDevice('swapped');
    await device.enroll();
    standIn.state.issueInstead = () => Promise.resolve(standIn.issuer.der);
    const id = await requestId(estuary, device.cn);
    await standIn.decide('approve', await referenceOf(device.cn));
    const answer = await device.final();
    expect([answer.status, answer.text.includes('CERTIFICATE')]).toEqual([500, false]);
    const [failure, ...more] = await auditOf(estuary, 'certificate.failed', id);
    expect(String(failure?.['detail'])).toContain('certifies another public key');
    expect(more).toEqual([]);
    expect(await statusOf(device.cn)).toBe('failed');
  });
});

describe('a submission that is not answered', () => {
  test('is found again at the CA, and never made twice', async () => {
    const device = await newDevice('cut-after');
    server.faults.cutAfterSubmission = true;
    const before = server.count(SUBMIT);
    expect((await device.enroll()).status).toBe(202);
    server.faults.cutAfterSubmission = false;
    await pause(1100);
    expect((await device.enroll()).status).toBe(202);
    // The server can be looking for it already.
    await expect.poll(() => referenceOf(device.cn).catch(() => undefined)).toBeDefined();
    await standIn.decide('approve', await referenceOf(device.cn));
    expectCertificate(await device.final(), device);
    expect(server.count(SUBMIT) - before).toBe(1);
  });

  test('fails when the CA does not know it; the OTP works again', async () => {
    const device = await newDevice('cut-before');
    server.faults.cutBeforeSubmission = true;
    const before = server.count(SUBMIT);
    expect((await device.enroll()).status).toBe(202);
    server.faults.cutBeforeSubmission = false;
    const answer = await device.final();
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1']);
    expect(server.count(SUBMIT) - before).toBe(1);
    expect(await statusOf(device.cn)).toBe('failed');
    expect(await usesOf(estuary, device.otp.id)).toBe(0);
    expect((await device.enroll()).status).toBe(202);
    expect(server.count(SUBMIT) - before).toBe(2);
  });

  test('is found again after a kill -9 between submission and record', async () => {
    const device = await newDevice('killed');
    server.faults.delay = 1500;
    const before = server.count(SUBMIT);
    const unanswered = device.enroll().catch((error: unknown) => error);
    await expect.poll(() => server.count(SUBMIT)).toBe(before + 1);
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    expect(await unanswered).toBeInstanceOf(Error);
    await expect
      .poll(() => [...standIn.state.requests.values()].some(({ csr }) => csr.publicKey.spki.equals(device.key.spki)))
      .toBe(true);
    server.faults.delay = 0;
    await estuary.restart();
    expect((await device.enroll()).status).toBe(202);
    await expect.poll(async () => referenceOf(device.cn).catch(() => undefined)).toBeDefined();
    await standIn.decide('approve', await referenceOf(device.cn));
    expectCertificate(await device.final(), device);
    expect(server.count(SUBMIT)).toBe(before + 1);
    expect(await usesOf(estuary, device.otp.id)).toBe(1);
  });

  test('when the CA is down and certainly has nothing: 503 with Retry-After, and nothing is queued', async () => {
    const device = await newDevice('down');
    server.faults.undeployed = true;
    const answer = await device.enroll();
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1']);
    expect(await requestsOf(estuary, device.cn)).toEqual([]);
    expect(await usesOf(estuary, device.otp.id)).toBe(0);
    server.faults.undeployed = false;
    await caInUse(estuary);
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

describe('approval = "manual" before a CA with a queue', () => {
  test('first an administrator, then the agents', async () => {
    estuary.reconfigure((config) => {
      caSection(config)['approval'] = 'manual';
    });
    await estuary.server.stop();
    await estuary.restart();
    const device = await newDevice('both');
    const before = server.count(SUBMIT);
    expect((await device.enroll()).status).toBe(202);
    expect(server.count(SUBMIT)).toBe(before);
    const { status } = await estuary.admin('POST', `/admin/requests/${await requestId(estuary, device.cn)}/approve`);
    expect(status).toBe(200);
    expect((await device.enroll()).status).toBe(202);
    expect(server.count(SUBMIT)).toBe(before + 1);
    await standIn.decide('approve', await referenceOf(device.cn));
    expectCertificate(await device.final(), device);
    expect(await usesOf(estuary, device.otp.id)).toBe(1);
  });
});
