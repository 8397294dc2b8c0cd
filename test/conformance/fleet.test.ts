/** A fleet registers, enrolls, renews and is shut out; an external authorization service decides. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, extKeyUsage, keyUsage, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatePem, Estuary, itemsOf } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { removeFolder } from '../support/folders.ts';

const key = makeKey();
const folder = mkdtempSync(join(tmpdir(), 'estuary-fleet-'));
let estuary: Estuary;
let service: Server;
let asked = 0;
let answer: unknown = { allow: true };

beforeAll(async () => {
  const root = await makeCa('CN=Service root');
  const leaf = await makeClient('CN=inventory', root, {
    extensions: [keyUsage('digitalSignature'), extKeyUsage('1.3.6.1.5.5.7.3.1'), subjectAltName(dns('localhost'))],
  });
  writeFileSync(join(folder, 'root.pem'), encodePem('CERTIFICATE', root.der));
  service = createServer(
    { cert: encodePem('CERTIFICATE', leaf.der), key: pkcs8Pem(leaf.keys) },
    (request, response) => {
      asked += 1;
      request.resume().on('end', () => void response.end(JSON.stringify(answer)));
    },
  );
  // After a stall, it would end a connection that the server is using.
  service.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const url = `https://localhost:${(service.address() as AddressInfo).port}/authorize`;
  estuary = await Estuary.start({
    configure: (config) => {
      Object.assign(caSection(config), {
        devices: 'required',
        authorization: { url, trust_anchors: join(folder, 'root.pem'), timeout: 60 },
      });
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  removeFolder(folder);
});

const admin = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
  call({
    port: estuary.server.port('admin'),
    path,
    method,
    tls: { ca: estuary.root },
    headers: { Authorization: `Bearer ${estuary.adminToken}`, ...headers },
    ...(body === undefined ? {} : { body: Buffer.from(body) }),
  });

const csrOf = (id: string): string => onTheWire(simpleCsr(key, id));

async function enroll(id: string) {
  const { token } = await estuary.otp({ client_id: id });
  return estuary.enroll(csrOf(id), { password: token });
}

test('registered by CSV, enrolled by token, renewed; disabled, it renews no more', async () => {
  const refused = await enroll('press-7');
  expect([refused.status, refused.text.trim()]).toEqual([403, 'device not registered']);
  expect(asked).toBe(0);

  const table = 'id,attributes.site\r\npress-7,Berlin\r\npress-8,Bonn\r\n';
  const imported = await admin('POST', '/admin/devices', { 'Content-Type': 'text/csv' }, table);
  expect([imported.status, imported.text.split('\r\n').length]).toEqual([200, 4]);

  const enrolled = await enroll('press-7');
  expect(enrolled.status).toBe(200);
  const client = { cert: certificatePem(enrolled), key: key.pem };
  const renew = () => estuary.enroll(csrOf('press-7'), { path: 'simplereenroll', client });
  expect((await renew()).status).toBe(200);

  const { json } = await estuary.admin('GET', '/admin/devices/press-7');
  expect(json).toMatchObject({
    attributes: { site: 'Berlin' },
    certificates: [{ device: 'press-7' }, { device: 'press-7' }],
  });
  expect(itemsOf({ items: json['tokens'] }).map(({ status }) => status)).toContain('consumed');

  expect((await estuary.admin('PATCH', '/admin/devices/press-7', { enabled: false })).status).toBe(200);
  const stopped = await renew();
  expect([stopped.status, stopped.text.trim()]).toEqual([403, 'device not registered']);

  expect((await estuary.admin('DELETE', '/admin/devices/press-7?revoke=true')).status).toBe(204);
  const { json: certificates } = await estuary.admin('GET', '/admin/certificates?device=press-7');
  expect(itemsOf(certificates).map(({ status }) => status)).toEqual(['revoked', 'revoked']);

  const exported = await admin('GET', '/admin/devices', { Accept: 'text/csv' });
  expect(exported.text).toContain('press-8,,true');
  expect(exported.text).not.toContain('press-7');
});

test('the service decides, and its answers are counted', async () => {
  answer = { allow: true, subject: 'CN=press-8,O=Example', validity_days: 3 };
  expect((await enroll('press-8')).status).toBe(200);
  const { json } = await estuary.admin('GET', '/admin/devices/press-8');
  expect(json).toMatchObject({ certificates: [{ subject: 'CN=press-8,O=Example' }] });
  answer = { allow: false, reason: 'press-8 was sold' };
  const refused = await enroll('press-8');
  expect([refused.status, refused.text.trim()]).toEqual([403, 'press-8 was sold']);
  answer = 'nonsense';
  const failed = await enroll('press-8');
  expect([failed.status, Number(failed.headers['retry-after']) > 0]).toEqual([503, true]);
  const metrics = (await admin('GET', '/metrics')).text;
  for (const [outcome, count] of [
    ['allowed', 3],
    ['denied', 1],
    ['failed', 1],
  ] as const)
    expect(metrics).toContain(`estuary_authorization_seconds_count{ca="devices",outcome="${outcome}"} ${count}`);
});
