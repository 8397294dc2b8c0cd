import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Ca } from '../../../src/ca/router.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { ipAddress } from '../../../src/pki/x509/general-name.ts';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import { issue } from '../../store/support.ts';
import { ecdsaTwin } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { adminFixture, DAY, failure, fileCa, issueFrom, type AdminFixture } from './support.ts';
import { type BodyOf, expectBody, expectWholeBody } from './typed.ts';

describe('GET /admin/certificates', () => {
  const folder = temporaryFolder();
  const start = Date.now();
  let close: () => Promise<void>;
  let api: AdminFixture;
  let devices: Ca;
  let lab: Ca;
  let one: CertificateRow;
  let two: CertificateRow;
  let revoked: CertificateRow;
  let expired: CertificateRow;

  beforeAll(async () => {
    devices = await fileCa(folder, 'devices', true);
    lab = await fileCa(folder, 'lab');
    api = await adminFixture({ cas: [devices, lab], start, onEnd: (cleanUp) => (close = cleanUp) });
    const { store } = api;
    one = await issueFrom(devices, store, 'CN=Sensor 1,O=Example', [
      { kind: 'dns', value: 'sensor1.example' },
      ipAddress('192.0.2.1'),
      { kind: 'email', value: 'ops@example.com' },
      { kind: 'uri', value: 'urn:sensor:1' },
    ]);
    two = await issueFrom(lab, store, 'CN=bench-2,O=Lab');
    revoked = await issueFrom(devices, store, 'CN=stolen');
    await store.revokeCertificate(
      { ca: 'devices', serial: revoked.serial, revoked_at: start, reason: 'keyCompromise', invalidity_date: null },
      [],
    );
    expired = await issue(store, { subject: 'CN=old', not_before: start - 9 * DAY, not_after: start - DAY });
  });
  afterAll(async () => {
    await close();
    folder.remove();
  });

  type Page = BodyOf<'GET', '/admin/certificates'>;
  const list = async (query: string): Promise<Page> => {
    const response = await api.call('GET', `/admin/certificates?${query}`);
    expect(response.statusCode, response.body).toBe(200);
    return response.json();
  };
  const serials = async (query: string): Promise<string[]> => (await list(query)).items.map(({ serial }) => serial);

  it('lists records with all their fields and no PEM', async () => {
    const { items, next_cursor } = await list('');
    expect(next_cursor).toBeNull();
    expect(items).toHaveLength(4);
    expect(items.find(({ serial }) => serial === one.serial)).toEqual({
      serial: one.serial,
      ca: 'devices',
      subject: 'CN=Sensor 1,O=Example',
      sans: ['DNS:sensor1.example', 'IP:192.0.2.1', 'email:ops@example.com', 'URI:urn:sensor:1'],
      not_before: new Date(one.not_before).toISOString(),
      not_after: new Date(one.not_after).toISOString(),
      status: 'valid',
      revoked_at: null,
      reason: null,
      requester: 'otp:1',
      method: 'otp',
      request_id: one.request_id,
      fingerprint_sha256: one.fingerprint_sha256,
      device: null,
      rescue_until: null,
    });
  });

  it('filters by ca, subject, serial, status and expires_before, and by several at once', async () => {
    expect(await serials('ca=lab')).toEqual([two.serial]);
    expect(await serials('subject=sensor%201')).toEqual([one.serial]);
    expect(await serials(`serial=${two.serial}`)).toEqual([two.serial]);
    expect(await serials('status=revoked')).toEqual([revoked.serial]);
    expect(await serials('status=expired')).toEqual([expired.serial]);
    expect((await serials('status=valid')).sort()).toEqual([one.serial, two.serial].sort());
    expect(await serials(`expires_before=${new Date(start).toISOString()}`)).toEqual([expired.serial]);
    expect(await serials(`expires_before=${new Date(start + 300 * DAY).toISOString()}&ca=lab`)).toEqual([two.serial]);
    expect(await serials('ca=lab&status=revoked')).toEqual([]);
  });

  it('filters by fingerprint, with or without colons', async () => {
    const colons = two.fingerprint_sha256.toUpperCase().replaceAll(/(..)(?!$)/g, '$1:');
    expect(await serials(`fingerprint_sha256=${two.fingerprint_sha256}`)).toEqual([two.serial]);
    expect(await serials(`fingerprint_sha256=${colons}&ca=lab`)).toEqual([two.serial]);
    expect(await serials(`fingerprint_sha256=${colons}&ca=devices`)).toEqual([]);
    const response = await api.call('GET', '/admin/certificates?fingerprint_sha256=ab');
    expect(failure(response)).toMatchObject({
      code: 'FIELD_INVALID',
      message: 'fingerprint_sha256 must be 64 hex digits',
    });
  });

  it('an empty filter is ignored, and an unconfigured label finds nothing', async () => {
    expect(await serials('ca=&subject=&serial=&status=&expires_before=&limit=&cursor=')).toHaveLength(4);
    expect(await serials('ca=gone')).toEqual([]);
  });

  it('shows one certificate with its PEM, which is the certificate that was issued', async () => {
    const response = await api.call('GET', `/admin/certificates/${one.serial}`);
    const { pem, content, ...record } = response.json();
    const [listed] = (await list(`serial=${one.serial}`)).items;
    expect(record).toEqual({ ...listed, archived_key_id: null });
    expect(new X509Certificate(pem).raw).toEqual(one.der);
    expect(content).toMatchObject({ serial: one.serial, issuer: 'CN=devices,O=Estuary', key_type: 'ec:P-256' });
  });

  it('tells when and why one was revoked', async () => {
    expectBody(await api.call('GET', `/admin/certificates/${revoked.serial}`), {
      status: 'revoked',
      revoked_at: new Date(start).toISOString(),
      reason: 'keyCompromise',
    });
  });

  it('asks for ca where two CAs share a serial number', async () => {
    const twin = await issue(api.store, { ca: 'lab', serial: one.serial, subject: 'CN=twin' });
    const answer = failure(await api.call('GET', `/admin/certificates/${twin.serial}`));
    expect(answer).toMatchObject({ statusCode: 400, code: 'SERIAL_AMBIGUOUS' });
    expect(answer.message).toMatch(/devices, lab|lab, devices/);
    const response = await api.call('GET', `/admin/certificates/${twin.serial}?ca=lab`);
    expectBody(response, { ca: 'lab', subject: 'CN=twin' });
  });

  it('404 CERTIFICATE_NOT_FOUND for an unknown serial number, and for an invalid one', async () => {
    for (const serial of ['00', 'ff'.repeat(20), 'ff'.repeat(21), 'nope', '0', `${one.serial}?ca=gone`])
      expect(failure(await api.call('GET', `/admin/certificates/${serial}`)), serial).toMatchObject({
        statusCode: 404,
        code: 'CERTIFICATE_NOT_FOUND',
      });
  });
});

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
      [{ pem: pem.replaceAll('CERTIFICATE', 'PUBLIC KEY'), ca: 'devices' }, 'FIELD_INVALID', 'pem'],
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
