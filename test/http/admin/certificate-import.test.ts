import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Ca } from '../../../src/ca/router.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import { ecdsaTwin } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { adminFixture, failure, fileCa, issueFrom, type AdminFixture } from './support.ts';
import { expectBody, expectWholeBody } from './typed.ts';

describe('POST /admin/certificates', () => {
  const folder = temporaryFolder();
  const start = Date.now();
  const ends: (() => Promise<void>)[] = [];
  let api: AdminFixture;
  let devices: Ca;
  let lab: Ca;
  /** As it stood in a store that is no longer there. */
  let lost: CertificateRow;
  let pem: string;

  beforeAll(async () => {
    devices = await fileCa(folder, 'devices', true);
    lab = await fileCa(folder, 'lab');
    const sameKey = new Ca({ ...devices.config, label: 'same-key', default: false }, devices.driver);
    const common = { cas: [devices, lab, sameKey], start, onEnd: (end: () => Promise<void>) => void ends.push(end) };
    const former = await adminFixture(common);
    lost = await issueFrom(devices, former.store, 'CN=Sensor 7,O=Example', [{ kind: 'dns', value: 'sensor7.example' }]);
    pem = encodePem('CERTIFICATE', lost.der);
    api = await adminFixture(common);
  });
  afterAll(async () => {
    for (const end of ends) await end();
    folder.remove();
  });

  const take = (body: unknown) => api.call('POST', '/admin/certificates', body);

  it('takes in what the CA signed and the store does not know, so that it can be revoked', async () => {
    expect((await api.call('GET', `/admin/certificates/${lost.serial}`)).statusCode).toBe(404);
    const response = await take({ pem, ca: 'devices' });
    expect(response.statusCode, response.body).toBe(201);
    expectBody(response, {
      serial: lost.serial,
      ca: 'devices',
      subject: 'CN=Sensor 7,O=Example',
      sans: ['DNS:sensor7.example'],
      not_before: new Date(lost.not_before).toISOString(),
      not_after: new Date(lost.not_after).toISOString(),
      status: 'valid',
      requester: 'test admin',
      method: 'import',
      request_id: String(response.headers['x-request-id']),
      fingerprint_sha256: lost.fingerprint_sha256,
      device: null,
      pem,
    });
    expectWholeBody(await api.call('GET', `/admin/certificates/${lost.serial}`), response.json());
    const records = (await api.call('GET', `/admin/audit?serial=${lost.serial}`)).json();
    expect(records.items).toMatchObject([
      {
        type: 'certificate.imported',
        outcome: 'success',
        subject: 'test admin',
        ca: 'devices',
        serial: lost.serial,
        certificate_subject: 'CN=Sensor 7,O=Example',
        certificate_sans: ['DNS:sensor7.example'],
      },
    ]);

    const again = await take({ pem, ca: 'devices' });
    expect(failure(again)).toMatchObject({ statusCode: 409, code: 'CERTIFICATE_KNOWN' });

    // Neither another encoding of its signature nor another label of the same key makes it another certificate.
    const twin = encodePem('CERTIFICATE', ecdsaTwin(lost.der));
    for (const body of [
      { pem: twin, ca: 'devices' },
      { pem, ca: 'same-key' },
      { pem: twin, ca: 'same-key' },
    ])
      expect(failure(await take(body))).toMatchObject({ statusCode: 409, code: 'CERTIFICATE_KNOWN' });

    const revoked = await api.call('POST', `/admin/certificates/${lost.serial}/revoke`);
    expectBody(revoked, { status: 'revoked' });
  });

  it('refuses what another CA signed, the CA’s own certificate, and what is no certificate', async () => {
    const own = encodePem('CERTIFICATE', devices.certificate.der);
    const other = encodePem('CERTIFICATE', (await issueFrom(lab, api.store, 'CN=bench')).der);
    const broken = encodePem('CERTIFICATE', lost.der.subarray(0, -1));
    const forged = Buffer.from(lost.der);
    forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1;
    const refused: readonly (readonly [body: object, code: string, names: string])[] = [
      [{ pem, ca: 'lab' }, 'CERTIFICATE_FOREIGN', 'pem'],
      [{ pem: other, ca: 'devices' }, 'CERTIFICATE_FOREIGN', 'pem'],
      [{ pem: own, ca: 'devices' }, 'CERTIFICATE_FOREIGN', 'pem'],
      [{ pem: encodePem('CERTIFICATE', forged), ca: 'devices' }, 'CERTIFICATE_FOREIGN', 'pem'],
      [{ pem, ca: 'nowhere' }, 'FIELD_INVALID', 'ca'],
      [{ pem }, 'FIELD_INVALID', 'ca'],
      [{ ca: 'devices' }, 'FIELD_INVALID', 'pem'],
      [{ pem: '', ca: 'devices' }, 'FIELD_INVALID', 'pem'],
      [{ pem: 'no PEM', ca: 'devices' }, 'FIELD_INVALID', 'pem'],
      [{ pem: pem + pem, ca: 'devices' }, 'FIELD_INVALID', 'pem'],
      [{ pem: pem.replaceAll('CERTIFICATE', 'TRUSTED CERTIFICATE'), ca: 'devices' }, 'FIELD_INVALID', 'pem'],
      [{ pem: broken, ca: 'devices' }, 'FIELD_INVALID', 'pem'],
      [{ pem, ca: 'devices', serial: '01' }, 'FIELD_INVALID', 'serial'],
    ];
    for (const [body, code, names] of refused) {
      const answer = failure(await take(body));
      expect(answer, JSON.stringify(body).slice(0, 80)).toMatchObject({ statusCode: 400, code });
      expect(answer.message).toContain(names);
    }
  });
});
