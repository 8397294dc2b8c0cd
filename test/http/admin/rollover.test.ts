/** Whether a key of a CA can be retired. */
import { hash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Ca } from '../../../src/ca/router.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import type { HeldCertificate, HolderRow } from '../../../src/store/held-certificates.ts';
import { type Issuer, makeCa, makeClient } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { adminFixture, DAY, fileCa, issueFrom, NOW, type AdminFixture } from './support.ts';

const folder = temporaryFolder();
let holders: HolderRow[] = [];
let close: () => Promise<void>;
let api: AdminFixture;
let devices: Ca;
let old: Issuer;
beforeAll(async () => {
  const { config, driver } = await fileCa(folder, 'devices', true);
  old = await makeCa('CN=Old CA');
  devices = new Ca(config, driver, { renewalIssuers: [parseCertificate(old.der)] });
  api = await adminFixture({
    cas: [devices],
    onEnd: (cleanUp) => (close = cleanUp),
    wrapStore: (store) => ({
      ...store,
      listHeldCertificates: (_, label) => Promise.resolve({ holders: label === 'devices' ? holders : [], next: null }),
      listGivenChains: () =>
        Promise.resolve([
          { position: 1, der: devices.certificate.der },
          { position: 2, der: old.der },
        ]),
    }),
  });
});
afterAll(async () => {
  await close();
  folder.remove();
});

const held = (der: Buffer, more: Partial<HeldCertificate> = {}): HeldCertificate => ({
  ...{ serial: parseCertificate(der).serialNumber, ca: 'devices', not_after: NOW + DAY, der, issued_at: 0 },
  ...{ first_used_at: null, last_used_at: null, renewal_info_at: null, replaced_at: null },
  ...{ tls_version: 'TLSv1.3', names_label: 1 },
  ...more,
});
const holder = (
  subject: string,
  certificates: HolderRow['certificates'],
  chains: readonly number[] = [],
): HolderRow => ({
  ...{ position: 1, label: 'devices', device: null, subject, sans: [], state: 'ok', since: 0, certificates, chains },
  ...{ window_end: null, last_code: null, last_message: null, last_failed_at: null },
});
const ofOld = async (subject: string) => (await makeClient(subject, old)).der;
const ofNew = async (subject: string) => (await issueFrom(devices, api.store, subject)).der;

async function issuers(): Promise<Record<string, unknown>[]> {
  const answer = await api.call('GET', '/admin/cas/devices/rollover');
  expect(answer.statusCode, answer.body).toBe(200);
  const { label, issuers } = answer.json() as { label: string; issuers: Record<string, unknown>[] };
  expect(label).toBe('devices');
  return issuers;
}

test('the current key is never retired, and a former one without holders can be', async () => {
  holders = [];
  expect(await issuers()).toMatchObject([
    { current: true, holders: 0, can_be_retired: false, latest_expiry: null, in_the_way: [] },
    {
      ...{ subject: 'CN=Old CA', current: false, holders: 0, informed: 0, can_be_retired: true },
      key_sha256: hash('sha256', parseCertificate(old.der).spki, 'hex'),
    },
  ]);
});

test('a holder is in the way until it has used a certificate of another key', async () => {
  const [before, after] = [await ofOld('CN=press'), await ofNew('CN=press')];
  const [only, expired] = [await ofOld('CN=saw'), await ofOld('CN=lathe')];
  holders = [
    holder('CN=press', [held(after), held(before, { first_used_at: 1, not_after: NOW + 2 * DAY })], [1]),
    holder('CN=saw', [held(only)], [2]),
    holder('CN=lathe', [held(expired, { not_after: NOW - DAY })]),
  ];
  const [current, former] = await issuers();
  expect(current).toMatchObject({ holders: 1, informed: 1 });
  expect(former).toMatchObject({ holders: 2, informed: 1, can_be_retired: false });
  expect(former?.['latest_expiry']).toBe(new Date(NOW + 2 * DAY).toISOString());
  expect(former?.['in_the_way']).toMatchObject([
    { subject: 'CN=press', ca: 'devices', serial: parseCertificate(after).serialNumber },
    { subject: 'CN=saw' },
  ]);
  holders = [holder('CN=press', [held(after, { first_used_at: 1 }), held(before)])];
  expect((await issuers())[1]).toMatchObject({ holders: 0, can_be_retired: true });
});

test('at most a hundred holders are named; 404 for an unknown label', async () => {
  const der = await ofOld('CN=many');
  holders = Array.from({ length: 101 }, (_, n) => holder(`CN=${n}`, [held(der)]));
  const former = (await issuers())[1];
  expect(former).toMatchObject({ holders: 101 });
  expect(former?.['in_the_way']).toHaveLength(100);
  expect((await api.call('GET', '/admin/cas/none/rollover')).statusCode).toBe(404);
});
