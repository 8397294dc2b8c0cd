import { expect, test } from 'vitest';
import { progressOf, reportOverdue } from '../../src/administration/renewals.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import { auditTypes } from '../store/contract/support.ts';
import { T0 } from '../store/rows.ts';
import { certificateRow, opened, reservation, temporaryPaths } from '../store/support.ts';

const DAY = 86_400_000;

test('certificates that are not replaced in time are overdue, and are reported once; a failure counts at its CA only', async () => {
  const store = await opened(temporaryPaths());
  const begins = T0 + 1000;
  const issue = async (subject: string, created_at: number, more: Partial<CertificateRow> = {}) => {
    const intent = reservation({ ca: 'devices', created_at });
    await store.reserve(intent, []);
    const row = certificateRow(intent, { subject, sans: ['DNS:a'], not_before: T0, not_after: T0 + 90 * DAY, ...more });
    await store.recordCertificate(row, []);
    return row.serial;
  };
  const revoke = (serial: string) =>
    store.revokeCertificate({ ca: 'devices', serial, revoked_at: T0, reason: 'superseded', invalidity_date: null }, []);
  for (const subject of ['CN=replaced', 'CN=late', 'CN=revoked']) await issue(subject, T0);
  await revoke(await issue('CN=gone', T0));
  await issue('CN=device', T0, { device: 'tag-1', device_key: 'key-1' });
  const row = { id: 'one', selection: { ca: 'devices' }, begins, due: begins + 1000, created_by: 'Ada' };
  await store.startRenewal({ ...row, reason: null, explanation_url: null, overdue_at: null }, []);
  const [campaign] = await store.listRenewals();
  if (campaign === undefined) throw new Error('not started');
  expect(await progressOf(store, campaign, begins)).toMatchObject({ total: 4, waiting: 4, replaced: 0, overdue: 0 });
  const denied = { type: 'certificate.denied', outcome: 'failure', time: begins + 1 } as const;
  await store.audit([
    { ...denied, ca: 'lab', subject: 'CN=late' },
    { ...denied, ca: 'devices', subject: 'CN=revoked' },
  ]);
  expect(await progressOf(store, campaign, begins + 2)).toMatchObject({ total: 4, waiting: 3, failed: 1 });
  await issue('CN=replaced', begins + 1, { sans: ['DNS:A'] });
  await issue('CN=of the same device', begins + 1, { device: 'tag-1', device_key: 'key-1' });
  await revoke(await issue('CN=revoked', begins + 1));
  const late = await progressOf(store, campaign, campaign.due + 1);
  expect(late).toMatchObject({ total: 4, replaced: 2, waiting: 0, overdue: 2 });
  expect(late.overdueRows.map(({ subject }) => subject)).toEqual(['CN=late', 'CN=revoked']);
  for (let n = 0; n < 2; n++) await reportOverdue(store, campaign.due + 1);
  expect((await auditTypes(store)).filter((type) => type === 'renewal.overdue')).toHaveLength(1);
});
