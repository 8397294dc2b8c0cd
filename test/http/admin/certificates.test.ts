import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Ca } from '../../../src/ca/router.ts';
import { ipAddress } from '../../../src/pki/x509/general-name.ts';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import { issue } from '../../store/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { adminFixture, DAY, failure, fileCa, issueFrom, type AdminFixture } from './support.ts';
import { type BodyOf, expectBody } from './typed.ts';

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

  it('an empty filter is ignored, and an unconfigured label finds nothing', async () => {
    expect(await serials('ca=&subject=&serial=&status=&expires_before=&limit=&cursor=')).toHaveLength(4);
    expect(await serials('ca=gone')).toEqual([]);
  });

  it('reads serial numbers as openssl prints them', async () => {
    const upper = one.serial.toUpperCase();
    const colons = (one.serial.match(/../g) ?? []).join(':');
    for (const text of [upper, colons]) {
      expect(await serials(`serial=${text}`)).toEqual([one.serial]);
      expectBody(await api.call('GET', `/admin/certificates/${text}`), { serial: one.serial });
    }
  });

  it('pages with limit and cursor', async () => {
    const seen: string[] = [];
    let cursor: string | null = '';
    for (let pages = 0; cursor !== null && pages < 5; pages++) {
      const page: Page = await list(`limit=1&cursor=${encodeURIComponent(cursor)}`);
      seen.push(...page.items.map(({ serial }) => serial));
      cursor = page.next_cursor;
    }
    expect(seen.sort()).toEqual([one, two, revoked, expired].map(({ serial }) => serial).sort());
  });

  it('shows one certificate with its PEM, which is the certificate that was issued', async () => {
    const response = await api.call('GET', `/admin/certificates/${one.serial}`);
    const { pem, ...record } = response.json();
    const [listed] = (await list(`serial=${one.serial}`)).items;
    expect(record).toEqual({ ...listed, archived_key_id: null });
    expect(new X509Certificate(pem).raw).toEqual(one.der);
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
