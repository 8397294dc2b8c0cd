/** RFC 6960 §2.6: a CA delegates its OCSP responses to a separate key; another CA signs its own. */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { makeKey } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { certify, newKey, OCSP_SIGNER } from '../support/rollover.ts';

let estuary: Estuary;
const key = makeKey();
const RESPONDER = /CN ?= ?Responder/;

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure(config, dir) {
      const base = { host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), { enabled: true, ...base });
      newKey(dir, 'ca/ocsp');
      certify(dir, 'ca/ocsp', { subject: '/CN=Responder', key: 'ca/ocsp', by: 'ca/issuing', extensions: OCSP_SIGNER });
      caSection(config)['ocsp'] = { certificate: 'ca/ocsp.pem', private_key: 'ca/ocsp.key' };
    },
  });
});
afterAll(() => estuary.stop());

const file = (name: string): string => join(estuary.dir, name);

/** What openssl says that the CA with this label says about a certificate. */
async function status(label: string, issuer: string, cert: string): Promise<string> {
  writeFileSync(file('client.pem'), cert);
  const url = `http://127.0.0.1:${estuary.server.port('publication')}/ocsp/${label}`;
  const trust = ['-issuer', file(issuer), '-CAfile', file('ca/root.pem'), '-verify_other', file(issuer)];
  return (await runAny('openssl', ['ocsp', ...trust, '-cert', file('client.pem'), '-url', url, '-resp_text'])).output;
}

test('openssl takes the responder for the CA, by the certificate in the response', async () => {
  const { cert } = await estuary.enrolled(key);
  const answer = await status('devices', 'ca/issuing.pem', cert);
  expect(answer).toContain('Response verify OK');
  expect(answer).toContain('client.pem: good');
  expect(answer).toMatch(RESPONDER);
  expect(answer).toContain('OCSP No Check');
});

test('a revocation shows at once', async () => {
  const { cert } = await estuary.enrolled(key);
  expect(await status('devices', 'ca/issuing.pem', cert)).toContain('client.pem: good');
  const serial = new X509Certificate(cert).serialNumber.toLowerCase();
  await estuary.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'keyCompromise' });
  const answer = await status('devices', 'ca/issuing.pem', cert);
  expect(answer).toContain('Response verify OK');
  expect(answer).toMatch(/client\.pem: revoked/);
});

test('a CA without a responder answers itself', async () => {
  const { cert } = await estuary.enrolled(key, 'device-1', [], 'lab/simpleenroll');
  const answer = await status('lab', 'ca/lab.pem', cert);
  expect(answer).toContain('Response verify OK');
  expect(answer).toContain('client.pem: good');
  expect(answer).not.toMatch(RESPONDER);
});

test('the CRL is still signed by the CA itself', async () => {
  const url = `http://127.0.0.1:${estuary.server.port('publication')}/crl/devices.crl`;
  writeFileSync(file('latest.crl'), Buffer.from(await (await fetch(url)).arrayBuffer()));
  const args = ['crl', '-inform', 'DER', '-in', file('latest.crl'), '-noout', '-CAfile', file('ca/issuing.pem')];
  expect((await runAny('openssl', args)).output).toContain('verify OK');
});
