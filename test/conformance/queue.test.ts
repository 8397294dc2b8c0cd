/**
 * RFC 7030 §4.2.3: requests that wait for an administrator.
 *
 * Longer than other files: its cases share a server.
 */
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { ecdsaTwin } from '../support/certificates.ts';
import { buildCsr, commonName, dns, extensionRequest, makeKey, onTheWire, san, simpleCsr } from '../support/csr.ts';
import { caSection, certificatePem, Estuary, itemsOf, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { approve, requestId, requestsOf, usesOf } from '../support/queued-requests.ts';

let estuary: Estuary;
const key = makeKey();

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      caSection(config)['approval'] = 'manual';
      section(config, 'est')['retry_after'] = 7;
      section(config, 'otp')['max_failures'] = 50;
    },
  });
});
afterAll(() => estuary.stop());

let names = 0;
const freshName = (): string => `queued-${++names}`;

const serialOf = (answer: Answer): string => new X509Certificate(certificatePem(answer)).serialNumber.toLowerCase();

interface Queued {
  readonly cn: string;
  readonly otp: { readonly id: string; readonly token: string };
  readonly poll: () => Promise<Answer>;
}

/** A request that waits, made with a single-use token. */
async function queued(): Promise<Queued> {
  const cn = freshName();
  const otp = await estuary.otp({ client_id: cn });
  // A new CSR each time: ECDSA signatures differ.
  const poll = (): Promise<Answer> =>
    estuary.enroll(onTheWire(simpleCsr(key, cn, ['a.example'])), { password: otp.token });
  expect((await poll()).status).toBe(202);
  return { cn, otp, poll };
}

describe('RFC 7030 §4.2.3: a request that waits', () => {
  test('is answered 202 with Retry-After and an empty body, and is in the admin list with its facts', async () => {
    const cn = freshName();
    const { token, id } = await estuary.otp({ client_id: 'device-7' });
    const answer = await estuary.enroll(onTheWire(simpleCsr(key, cn, ['b.example', 'a.example'])), { password: token });
    expect(answer.status).toBe(202);
    expect(answer.headers['retry-after']).toBe('7');
    expect(answer.headers['content-length']).toBe('0');
    expect(answer.body).toHaveLength(0);
    expect(await usesOf(estuary, id)).toBe(1);
    const [record] = await requestsOf(estuary, cn);
    expect(record?.['id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(record?.['created_at']).toMatch(/Z$/);
    expect(record).toEqual({
      id: record?.['id'],
      ca: 'devices',
      operation: 'simpleenroll',
      subject: `CN=${cn}`,
      sans: ['DNS:b.example', 'DNS:a.example'],
      key_type: 'ec:P-256',
      requester: 'device-7',
      requester_issuer: null,
      requester_sans: [],
      device: null,
      method: 'otp',
      status: 'pending',
      created_at: record?.['created_at'],
      decided_at: null,
      decided_by: [],
      reason: null,
      serial: null,
    });
  });

  test('a single-use token carries it from 202 through approval to the certificate, and again', async () => {
    const { cn, otp, poll } = await queued();
    expect((await poll()).status).toBe(202);
    await approve(estuary, cn);
    const issued = await poll();
    expect(issued.status).toBe(200);
    const certificate = new X509Certificate(certificatePem(issued));
    expect(certificate.subject).toBe(`CN=${cn}`);
    expect(certificate.subjectAltName).toBe('DNS:a.example');
    expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(key.spki);
    expect(serialOf(await poll())).toBe(serialOf(issued));
    const id = await requestId(estuary, cn);
    const { json } = await estuary.admin('GET', `/admin/requests/${id}`);
    expect(json).toMatchObject({ status: 'issued', serial: serialOf(issued) });
    expect(await usesOf(estuary, otp.id)).toBe(1);
    const record = await estuary.admin('GET', `/admin/certificates/${serialOf(issued)}`);
    expect(record.json).toMatchObject({ request_id: id, requester: cn, method: 'otp' });
  });

  test('the names count as a set, DNS names without case; the bytes of the CSR do not', async () => {
    const cn = freshName();
    const { token } = await estuary.otp();
    const csr = (...hosts: string[]): string =>
      onTheWire(
        buildCsr(key, {
          subject: commonName(cn),
          attributes: [extensionRequest(san(...hosts.map((host) => dns(host))))],
        }),
      );
    const statuses = [];
    for (const hosts of [
      ['a.example', 'b.example'],
      ['B.example', 'a.example'],
      ['a.example', 'A.EXAMPLE', 'b.example'],
    ])
      statuses.push((await estuary.enroll(csr(...hosts), { password: token })).status);
    expect(statuses).toEqual([202, 202, 202]);
    expect(await requestsOf(estuary, cn)).toHaveLength(1);
  });

  test('simplereenroll over mTLS waits as well, and a certificate that is presented itself is not handed out again', async () => {
    const { cn, poll } = await queued();
    await approve(estuary, cn);
    const client = { cert: certificatePem(await poll()), key: key.pem };
    const renew = (presented = client): Promise<Answer> =>
      estuary.enroll(onTheWire(simpleCsr(key, cn, ['a.example'])), { client: presented, path: 'simplereenroll' });
    expect((await renew()).status).toBe(202);
    const renewal = (await requestsOf(estuary, cn)).find(({ operation }) => operation === 'simplereenroll');
    await estuary.admin('POST', `/admin/requests/${String(renewal?.['id'])}/approve`);
    const renewed = await renew();
    expect(renewed.status).toBe(200);
    expect(serialOf(await renew())).toBe(serialOf(renewed));
    // The certificate, not an encoding of it: its ECDSA twin is the same one.
    const twin = encodePem('CERTIFICATE', ecdsaTwin(new X509Certificate(certificatePem(renewed)).raw));
    expect((await renew({ cert: twin, key: key.pem })).status).toBe(202);
    expect((await renew({ cert: certificatePem(renewed), key: key.pem })).status).toBe(202);
  });
});

describe('the decision', () => {
  test("a rejected request is answered 403 with the administrator's reason, and keeps its use", async () => {
    const { cn, otp, poll } = await queued();
    const path = `/admin/requests/${await requestId(estuary, cn)}`;
    const rejected = await estuary.admin('POST', `${path}/reject`, { reason: 'Gerät unbekannt – call us' });
    expect(rejected).toMatchObject({ status: 200, json: { status: 'rejected', reason: 'Gerät unbekannt – call us' } });
    const answer = await poll();
    expect(answer.status).toBe(403);
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(answer.body.toString('utf8')).toBe('Gerät unbekannt – call us');
    expect(Number(answer.headers['content-length'])).toBe(answer.body.length);
    expect(await usesOf(estuary, otp.id)).toBe(1);
  });

  test('queued, decided and issued are in the audit log under one request id', async () => {
    const { cn, poll } = await queued();
    await approve(estuary, cn);
    await poll();
    const id = await requestId(estuary, cn);
    const records = [];
    for (const type of ['request.queued', 'request.approved', 'certificate.issued', 'admin.access']) {
      const { json } = await estuary.admin('GET', `/admin/audit?limit=1000&type=${type}`);
      records.push(itemsOf(json).some((item) => JSON.stringify(item).includes(id)));
    }
    expect(records).toEqual([true, true, true, true]);
  });
});

describe('issued once', () => {
  test('polls at once after the approval yield one certificate', async () => {
    const { cn, poll } = await queued();
    await approve(estuary, cn);
    const answers = await Promise.all(Array.from({ length: 6 }, () => poll()));
    for (const { status } of answers) expect([200, 202]).toContain(status);
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    const serials = new Set(answers.filter(({ status }) => status === 200).map(serialOf));
    serials.add(serialOf(await poll()));
    expect(serials.size).toBe(1);
    const { json } = await estuary.admin('GET', `/admin/certificates?subject=${cn}`);
    expect(json['items']).toHaveLength(1);
  });

  test('a request and a decision survive a restart', async () => {
    const [waiting, decided] = [await queued(), await queued()];
    await approve(estuary, decided.cn);
    await estuary.server.stop();
    await estuary.restart();
    expect((await waiting.poll()).status).toBe(202);
    expect((await decided.poll()).status).toBe(200);
  });
});
