/** One more renewal with a certificate that expired, over TLS. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../support/csr.ts';
import { caSection, certificatePem, type ClientIdentity, Estuary, itemsOf, section } from '../support/estuary.ts';
import { importCertificate, type ImportOptions } from '../support/imported-certificate.ts';
import { approve, requestId } from '../support/queued-requests.ts';

const DAY = 86_400_000;
const key = makeKey();
let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      Object.assign(caSection(config, 1), { approval: 'manual' });
      section(config, 'otp')['max_uses'] = 1;
    },
  });
});
afterAll(() => estuary.stop());

const held = (cn: string, more: ImportOptions = {}) => importCertificate(estuary, key, cn, more);

const rescue = (serial: string, for_seconds: unknown = 3600, more: object = {}) =>
  estuary.admin('POST', `/admin/certificates/${serial}/rescue`, { for_seconds, ...more });
const endRescue = (serial: string) => estuary.admin('DELETE', `/admin/certificates/${serial}/rescue`);
const record = async (serial: string) => (await estuary.admin('GET', `/admin/certificates/${serial}`)).json;
const renew = (client: ClientIdentity, cn: string, by: TestKey = makeKey(), path = 'simplereenroll') =>
  estuary.enroll(onTheWire(simpleCsr(by, cn)), { path, client });
const audited = async (type: string, wanted: string) =>
  itemsOf((await estuary.admin('GET', `/admin/audit?type=${type}&serial=${wanted}`)).json);

test('a rescued certificate renews once, repeats get the same certificate, and any other renewal gets 401', async () => {
  const old = await held('gone-1');
  expect((await renew(old, 'gone-1')).status).toBe(401);
  const before = Date.now();
  const { status, json } = await rescue(old.serial, 3600, { reason: 'in a drawer' });
  expect([status, json['serial'], json['status']]).toEqual([201, old.serial, 'expired']);
  const until = Date.parse(String(json['rescue_until']));
  expect(until - before).toBeGreaterThanOrEqual(3_600_000);
  expect(until).toBeLessThanOrEqual(Date.now() + 3_600_000);
  expect(await record(old.serial)).toMatchObject({ rescue_until: json['rescue_until'] });
  const list = await estuary.admin('GET', `/admin/certificates?serial=${old.serial}`);
  expect(itemsOf(list.json)).toMatchObject([{ rescue_until: json['rescue_until'] }]);

  expect((await renew(old, 'another')).status, 'a rejected attempt does not use it').toBe(403);
  expect((await renew(old, 'gone-1', makeKey(), 'simpleenroll')).status, 'simplereenroll only').toBe(401);
  const fresh = makeKey();
  const [first, second] = await Promise.all([renew(old, 'gone-1', fresh), renew(old, 'gone-1', fresh)]);
  expect([first.status, second.status], `${first.text} ${second.text}`).toEqual([200, 200]);
  expect(certificatePem(second)).toBe(certificatePem(first));
  expect(await record(old.serial)).toMatchObject({ rescue_until: null });
  expect(certificatePem(await renew(old, 'gone-1', fresh))).toBe(certificatePem(first));
  const other = await renew(old, 'gone-1');
  expect([other.status, other.text]).toEqual([401, 'client certificate expired']);
  expect((await renew({ cert: certificatePem(first), key: fresh.pem }, 'gone-1')).status).toBe(200);

  expect(await audited('certificate.rescued', old.serial)).toMatchObject([
    { ca: 'devices', reason: 'in a drawer', rescue_until: json['rescue_until'], certificate_subject: 'CN=gone-1' },
  ]);
  expect(await audited('certificate.rescue_ended', old.serial)).toMatchObject([{ ca: 'devices' }]);
  expect((await endRescue(old.serial)).status, 'ends the repeats').toBe(204);
  expect((await renew(old, 'gone-1', fresh)).status).toBe(401);
  expect((await endRescue(old.serial)).status).toBe(404);
});

test('DELETE ends a pass, and a second call replaces the time', async () => {
  const old = await held('gone-2');
  await rescue(old.serial, 1);
  const { json } = await rescue(old.serial, 2_592_000);
  expect(Date.parse(String(json['rescue_until']))).toBeGreaterThan(Date.now() + 29 * DAY);
  expect((await endRescue(old.serial)).status).toBe(204);
  expect(await record(old.serial)).toMatchObject({ rescue_until: null });
  expect((await renew(old, 'gone-2')).status).toBe(401);
  const operation = 'DELETE /admin/certificates/:serial/rescue';
  expect(await audited('certificate.rescue_ended', old.serial)).toMatchObject([{ operation }]);
});

test('before the expiry a pass lasts from the expiry on, and a renewal does not use it', async () => {
  const current = await held('soon', { end: DAY });
  const { json } = await rescue(current.serial, 60);
  const { not_after, rescue_until } = json;
  expect(Date.parse(String(rescue_until)) - Date.parse(String(not_after))).toBe(60_000);
  for (let count = 0; count < 2; count++) expect((await renew(current, 'soon')).status).toBe(200);
  expect(await record(current.serial)).toMatchObject({ rescue_until });
});

test('a pass serves the polls of a request that it queued, and is used when the certificate is recorded', async () => {
  const old = await held('queued', { ca: 'lab' });
  await rescue(old.serial);
  const fresh = makeKey();
  const poll = () => renew(old, 'queued', fresh, 'lab/simplereenroll');
  expect([(await poll()).status, (await poll()).status]).toEqual([202, 202]);
  expect((await record(old.serial))['rescue_until']).not.toBeNull();
  const id = await requestId(estuary, 'queued');
  await approve(estuary, 'queued');
  const issued = await poll();
  expect(issued.status, issued.text).toBe(200);
  expect(certificatePem(await poll())).toBe(certificatePem(issued));
  expect((await record(old.serial))['rescue_until']).toBeNull();
  expect(await audited('certificate.rescue_ended', old.serial)).toMatchObject([{ request_id: id }]);
  expect((await renew(old, 'queued', makeKey(), 'lab/simplereenroll')).status).toBe(401);
});

test('with a pass, the expiry of an issuer does not count', async () => {
  const file = (name: string) => join(estuary.dir, 'ca', name);
  const privateKey = createPrivateKey(readFileSync(file('root.key')));
  const [root, current] = ['root.pem', 'issuing.pem'].map((name) =>
    parseCertificate(new X509Certificate(readFileSync(file(name))).raw),
  );
  if (root === undefined || current === undefined) expect.fail();
  const issuer = { subject: formatName(root.subject), kind: 'ec:P-256', der: root.der } as const;
  const keys = { privateKey, publicKey: createPublicKey(readFileSync(file('root.pem'))) };
  const times = { notBefore: Date.now() - 90 * DAY, notAfter: Date.now() - DAY };
  const former = await makeCa(formatName(current.subject), { ...times, issuer: { ...issuer, keys }, pathLength: 0 });
  const expired = await makeClient('CN=gone-3', former, { ...times, keys: key });
  writeFileSync(file('former.pem'), encodePem('CERTIFICATE', former.der));
  estuary.reconfigure((config) => {
    section(caSection(config), 'profile')['renewal_issuers'] = 'ca/former.pem';
  });
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
  const client = { cert: encodePem('CERTIFICATE', expired.der), key: key.pem };
  const { json } = await estuary.admin('POST', '/admin/certificates', { ca: 'devices', pem: client.cert });
  expect((await renew(client, 'gone-3')).status).toBe(401);
  await rescue(String(json['serial']));
  expect((await renew(client, 'gone-3')).status).toBe(200);
});

describe('every other rule applies', () => {
  test('a label that did not issue the certificate does not renew it', async () => {
    const old = await held('foreign', { ca: 'lab' });
    await rescue(old.serial);
    expect((await renew(old, 'foreign')).status).toBe(403);
    expect((await record(old.serial))['rescue_until']).not.toBeNull();
  });

  test('a revoked certificate gets no pass, and its pass does not count', async () => {
    const old = await held('revoked');
    await rescue(old.serial);
    await estuary.admin('POST', `/admin/certificates/${old.serial}/revoke`);
    const answer = await renew(old, 'revoked');
    expect([answer.status, answer.text]).toEqual([401, 'client certificate revoked']);
    expect(await rescue(old.serial)).toMatchObject({ status: 409, json: { code: 'RESCUE_OF_REVOKED' } });
  });
});

test('400 for a time out of range, 404 for an unknown certificate', async () => {
  const { serial } = await held('wrong');
  for (const wrong of [0, -1, 2_592_001, 1.5, 'PT1H', null])
    expect((await rescue(serial, wrong)).status, JSON.stringify(wrong)).toBe(400);
  expect((await estuary.admin('POST', `/admin/certificates/${serial}/rescue`, {})).status).toBe(400);
  expect((await rescue(serial, 60, { forever: true })).status).toBe(400);
  expect([(await rescue('00ff')).status, (await endRescue('00ff')).status]).toEqual([404, 404]);
  expect((await endRescue(serial)).status).toBe(404);
});
