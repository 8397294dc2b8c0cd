/** The built server: each operation of every listener once. The other files of this folder run the sources in their process. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { exchange, inShort, issuedBy, requestBy, tcr } from '../support/cmc.ts';
import { untilInCrl } from '../support/crls.ts';
import { buildCsr, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, certificatesOf, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { ocspRequest } from '../support/ocsp.ts';
import { readServerKey } from '../support/server-key.ts';
import { untilLogged } from '../support/server-process.ts';

let estuary: Estuary;
let device: ClientIdentity;
const key = makeKey();

beforeAll(async () => {
  estuary = await Estuary.start({
    built: true,
    listeners: ['est', 'admin', 'publication'],
    configure(config) {
      const publication = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test/' };
      Object.assign(section(config, 'publication'), publication);
      Object.assign(section(config, 'serverkeygen'), { encryption: 'optional' });
    },
  });
  device = await estuary.enrolled(key, 'device-1');
});
afterAll(() => estuary.stop());

test('EST: cacerts, csrattrs, simpleenroll, simplereenroll and serverkeygen (RFC 7030)', async () => {
  expect(certificatesOf(await estuary.est('cacerts'))).toHaveLength(2);
  expect((await estuary.est('csrattrs')).status).toBe(204);
  expect(new X509Certificate(device.cert).subject).toBe('CN=device-1');
  const renewed = await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), {
    path: 'simplereenroll',
    client: device,
  });
  expect(new X509Certificate(certificatePem(renewed)).checkPrivateKey(key.privateKey)).toBe(true);
  const { token } = await estuary.otp();
  const answer = await estuary.enroll(onTheWire(buildCsr(key)), { path: 'serverkeygen', password: token });
  expect(readServerKey(answer).keyType).toBe('application/pkcs8');
});

test('EST: a full CMC request (RFC 5272)', async () => {
  const request = requestBy(device, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] });
  const reply = await exchange(estuary, request, device);
  expect(inShort(reply)).toEqual(['success [1]']);
  expect(issuedBy(reply)).toHaveLength(1);
});

test('publication: the CA certificate, a CRL and OCSP responses; a revocation reaches them', async () => {
  const { serialNumber } = new X509Certificate(device.cert);
  const serial = serialNumber.toLowerCase();
  const url = `http://127.0.0.1:${estuary.server.port('publication')}`;
  const get = async (path: string, init: RequestInit = {}): Promise<Buffer> => {
    const response = await fetch(url + path, init);
    expect(response.status).toBe(200);
    return Buffer.from(await response.arrayBuffer());
  };
  const [ca] = parsePemCertificates(readFileSync(join(estuary.dir, 'ca/issuing.pem'), 'latin1'));
  if (ca === undefined) throw new Error('no CA');
  expect(await get('/ca/devices.cer')).toEqual(ca.der);
  const body = new Uint8Array(ocspRequest({ certificate: ca }, [serial]));
  const headers = { 'Content-Type': 'application/ocsp-request' };
  expect((await get('/ocsp/devices', { method: 'POST', headers, body })).length).toBeGreaterThan(100);
  const { status } = await estuary.admin('POST', `/admin/certificates/${serial}/revoke?ca=devices`, {
    reason: 'superseded',
  });
  expect(status).toBe(200);
  await untilInCrl(() => get('/crl/devices.crl'), serial);
});

test('admin: records, the audit log, metrics, health and the console', async () => {
  const { json } = await estuary.admin('GET', '/admin/certificates?limit=2');
  expect(itemsOf(json).length).toBeGreaterThan(0);
  expect(itemsOf((await estuary.admin('GET', '/admin/audit')).json).length).toBeGreaterThan(0);
  const text = async (path: string): Promise<string> => {
    const headers = { Authorization: `Bearer ${estuary.adminToken}` };
    const answer = await call({
      port: estuary.server.port('admin'),
      path,
      method: 'GET',
      tls: { ca: estuary.root },
      headers,
    });
    expect([path, answer.status]).toEqual([path, 200]);
    return answer.text;
  };
  expect(await text('/metrics')).toContain('estuary_');
  expect(await text('/readyz')).toContain('ok');
  expect(await text('/')).toContain('<script');
});

test('SIGTERM ends it with exit code 0', async () => {
  estuary.server.signal('SIGTERM');
  expect(await estuary.server.exited).toEqual({ code: 0, signal: null });
  await untilLogged(estuary.server, { msg: 'stopped' });
});
