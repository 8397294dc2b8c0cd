import { expect, test } from 'vitest';
import { Warnings } from '../../src/notification/warnings.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import { fileCa } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { certificateRow, opened, reservation, temporaryPaths } from '../store/support.ts';

const DAY = 86_400_000;

test('certificates are announced at each threshold once, and not if a newer one is valid', async () => {
  const clock = { now: Date.now() };
  const store = await opened(temporaryPaths(), () => clock.now);
  const folder = temporaryFolder();
  const ca = await fileCa(folder, 'devices', true);
  const sources = { store, cas: { issuers: [ca] }, isPublished: true, now: () => clock.now };
  const warnings = new Warnings({ ...sources, days: [30, 7, 1] });
  const issue = async (more: Partial<CertificateRow>, days: number) => {
    const intent = reservation({ ca: 'devices', created_at: clock.now });
    await store.reserve(intent, []);
    const times = { not_before: clock.now, not_after: clock.now + days * DAY };
    await store.recordCertificate(certificateRow(intent, { ...times, ...more }), []);
  };
  let seen = 0;
  /** The subjects and days of new records. */
  const announced = async (): Promise<readonly (readonly [string | undefined, number | undefined])[]> => {
    await warnings.look();
    const { items } = await store.listAudit({ type: 'certificate.expiring', limit: 100 });
    const fresh = items.slice(seen);
    seen = items.length;
    return fresh.map(({ certificate_subject, days }) => [certificate_subject, days]);
  };
  await issue({ subject: 'CN=long', requester: 'long' }, 40);
  await issue({ subject: 'CN=short', requester: 'short' }, 5);
  await issue({ subject: 'CN=renewed', requester: 'renewed' }, 20);
  await issue({ subject: 'CN=renewed', requester: 'CN=renewed' }, 400);
  await issue({ subject: 'CN=tag', device: 'tag', device_key: 'key' }, 20);
  await issue({ subject: 'CN=tag-new', device: 'tag', device_key: 'key' }, 400);
  expect(await announced()).toEqual([['CN=short', 7]]);
  expect(await announced()).toEqual([]);
  clock.now += 4.5 * DAY;
  expect(await announced()).toEqual([['CN=short', 1]]);
  clock.now += 10 * DAY;
  expect(await announced()).toEqual([['CN=long', 30]]);
  folder.remove();
});
