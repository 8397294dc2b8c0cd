/** Curl and openssl enroll, renew and revoke at the real Dogtag, through a profile that issues at once. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCertsOnly } from '../../src/pki/cms/cms.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { call } from '../support/https.ts';
import { AUTO } from '../support/dogtag-profiles.ts';
import { Dogtag, OPEN_TIMEOUT } from '../support/dogtag.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { Device, KEYS } from './support.ts';
import { pause } from '../support/until.ts';

describe.skipIf(!requires('dogtag', 'curl', 'openssl'))('a CA behind the real Dogtag', () => {
  let dogtag: Dogtag;
  let estuary: Estuary;
  let device: Device;

  beforeAll(async () => {
    dogtag = await Dogtag.open();
    estuary = await Estuary.start({
      configure: (config, dir) => {
        dogtag.configure(config, dir, AUTO);
        section(config, 'otp')['retry_window'] = 600;
      },
    });
    device = new Device(estuary);
    writeFileSync(device.file('dogtag-ca.pem'), dogtag.ca);
  }, OPEN_TIMEOUT);
  afterAll(async () => {
    await estuary.stop();
    await dogtag.close();
  });

  test("RFC 7030 §4.1: cacerts is the CA's certificate in a certs-only message of our own", async () => {
    const answer = await estuary.est('cacerts');
    expect(answer.status).toBe(200);
    const der = Buffer.from(answer.text, 'base64');
    const [own, ...more] = parseCertsOnly(der);
    expect(more).toEqual([]);
    expect(own && encodePem('CERTIFICATE', own).replace(/\s/g, '')).toBe(dogtag.ca.replace(/\s/g, ''));
  });

  test.each(Object.keys(KEYS).filter((kind): kind is keyof typeof KEYS => kind in KEYS))(
    'RFC 7030 §4.2: enrolls with an OTP, renews over mTLS with a new key, names kept: %s',
    async (kind) => {
      const name = `real-${kind.toLowerCase().replace(' ', '-')}`;
      const { token } = await estuary.otp({ client_id: name });
      const first = await device.request(name, kind);
      const enrolled = await device.enroll(first, token);
      expect(enrolled.status, enrolled.body).toBe(200);
      const pem = await device.verified(enrolled, device.file('dogtag-ca.pem'), first);

      const second = await device.request(name, kind);
      const renewed = await device.post('simplereenroll', second.csr, '--cert', pem, '--key', first.key);
      expect(renewed.status, renewed.body).toBe(200);
      const renewedPem = await device.verified(renewed, device.file('dogtag-ca.pem'), second);
      const serials = [await device.serial(pem), await device.serial(renewedPem)];
      expect(new Set(serials).size).toBe(2);
      for (const serial of serials) expect(await dogtag.certificateStatus(serial)).toBe('VALID');
    },
  );

  test('an answer that was lost is given again, however often and however parallel: one certificate of Dogtag', async () => {
    const { token, id } = await estuary.otp({ client_id: 'real-lost' });
    const request = await device.request('real-lost');
    // A client that polls before Dogtag has responded is told to retry.
    const final = async (): ReturnType<Device['enroll']> => {
      for (let polls = 0; ; polls++) {
        const answer = await device.enroll(request, token);
        if (answer.status !== 202 || polls === 60) return answer;
        await pause(500);
      }
    };
    const repeats = async (count: number) => Promise.all(Array.from({ length: count }, final));
    const answers = [...(await repeats(4)), ...(await repeats(2))];
    for (const { status, body } of answers) expect(status, body).toBe(200);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect((await estuary.admin('GET', `/admin/otp/${id}`)).json['uses']).toBe(1);
    const { json } = await estuary.admin('GET', '/admin/certificates?requester=real-lost');
    expect(itemsOf(json)).toHaveLength(1);
  });

  test('a revocation reaches Dogtag, and the certificate authenticates nobody any more', async () => {
    const { token } = await estuary.otp({ client_id: 'real-revoked' });
    const request = await device.request('real-revoked');
    const pem = await device.verified(await device.enroll(request, token), device.file('dogtag-ca.pem'), request);
    const serial = await device.serial(pem);
    const revoked = await estuary.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'keyCompromise' });
    expect(revoked).toMatchObject({ status: 200, json: { status: 'revoked', reason: 'keyCompromise' } });
    expect(await dogtag.certificateStatus(serial)).toBe('REVOKED');
    const renewal = await device.post('simplereenroll', request.csr, '--cert', pem, '--key', request.key);
    expect(renewal.status).toBe(401);
  });

  test("what breaks a constraint of Dogtag's profile is refused with 403 and Dogtag's reason; the use goes back", async () => {
    const otp = await estuary.otp({ client_id: 'real-refused' });
    const request = await device.request('real-refused', 'P-256', '/O=NoCN');
    const refused = await device.enroll(request, otp.token);
    expect(refused.status).toBe(403);
    expect(refused.body).toContain('Subject Name Not Matched');
    expect((await estuary.admin('GET', `/admin/otp/${otp.id}`)).json['uses']).toBe(0);
  });

  test('health: the CA is ok, and the service ready', async () => {
    const { json } = await estuary.admin('GET', '/admin/cas/devices');
    expect(json).toMatchObject({ driver: 'dogtag', health: 'ok' });
    expect(json['subject']).toContain('CN=CA Signing Certificate');
    const ready = await call({ port: estuary.server.port('admin'), path: '/readyz', tls: { ca: estuary.root } });
    expect(ready.status, ready.text).toBe(200);
  });
});
