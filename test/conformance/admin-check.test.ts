/** POST /admin/check on the built server. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary } from '../support/estuary.ts';

let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start({ configure: (config) => void (caSection(config, 1)['approval'] = 'manual') });
});
afterAll(() => estuary.stop());

const csr = simpleCsr(makeKey(), 'device-1', ['device-1.example']);
const pem = encodePem('CERTIFICATE REQUEST', csr);

test('what would be issued, queued and refused, and nothing happens', async () => {
  const check = async (ca: string, as: object, text = pem) =>
    (await estuary.admin('POST', '/admin/check', { ca, csr: text, as })).json;
  expect(await check('devices', { client_id: 'device-1' })).toMatchObject({
    verdict: 'issue',
    subject: 'CN=device-1',
    sans: ['DNS:device-1.example'],
    not_after: expect.stringMatching(/Z$/) as string,
  });
  expect(await check('lab', { client_id: 'device-1' })).toMatchObject({ verdict: 'queue' });
  const weak = encodePem('CERTIFICATE REQUEST', simpleCsr(makeKey('rsa1024'), 'device-1'));
  expect(await check('devices', { client_id: 'device-1' }, weak)).toMatchObject({
    verdict: 'refuse',
    code: 'CSR_KEY_WEAK',
    subject: 'CN=device-1',
  });
  const { cert } = await estuary.enrolled(makeKey(), 'device-1', ['device-1.example']);
  expect(await check('devices', { certificate: cert })).toMatchObject({ verdict: 'issue' });
  expect(await check('lab', { certificate: cert })).toMatchObject({
    verdict: 'refuse',
    code: 'CLIENT_CERTIFICATE_NOT_ACCEPTED',
  });
  expect((await estuary.admin('GET', '/admin/requests')).json['items']).toEqual([]);
  expect((await estuary.admin('GET', '/admin/certificates')).json['items']).toHaveLength(1);
});
