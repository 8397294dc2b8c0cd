import { expect, test } from 'vitest';
import { progressOf, REPORTED, reportOverdue } from '../../src/administration/renewals.ts';
import type { AuditEvent } from '../../src/audit/event.ts';
import type { CertificateRow, ListedCertificate } from '../../src/store/certificate-store.ts';
import type { RenewalRow } from '../../src/store/renewal-store.ts';
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

const CAMPAIGN: RenewalRow = {
  ...{ id: 'one', selection: { ca: 'devices' }, begins: T0, due: T0 + DAY, overdue_at: null },
  ...{ created_by: 'Ada', reason: null, explanation_url: null },
};

/** A store with these certificates and rejected subjects, one a page. */
function stubStore(listed: readonly Partial<ListedCertificate>[], subjects: readonly string[] = [], rows = [CAMPAIGN]) {
  const page = <T>(all: readonly T[], cursor: string | undefined) => {
    const at = Number(cursor ?? 0);
    return Promise.resolve({ items: all.slice(at, at + 1), next_cursor: at + 1 < all.length ? `${at + 1}` : null });
  };
  const noted: [number, readonly AuditEvent[]][] = [];
  const store = {
    listCertificates: ({ issued_after, cursor }: { issued_after?: number; cursor?: string }) =>
      page(issued_after === undefined ? listed : [], cursor),
    listAudit: ({ type, cursor }: { type: string; cursor?: string }) =>
      page(type === 'certificate.denied' ? subjects.map((subject) => ({ subject })) : [], cursor),
    listRenewals: () => Promise.resolve(rows),
    noteOverdue: (_: string, now: number, events: readonly AuditEvent[]) => {
      noted.push([now, events]);
      return Promise.resolve();
    },
  } as unknown as Parameters<typeof reportOverdue>[0];
  return { store, noted };
}

const certificates = (count: number, not_after: number): Partial<ListedCertificate>[] =>
  Array.from({ length: count }, (_, n) => ({
    ...{ ca: 'devices', serial: `${n}`, subject: `CN=${n}`, sans: [], device_key: null, revoked_at: null, not_after },
  }));

test('an expired certificate needs no replacement; the due time itself is in time', async () => {
  const { due } = CAMPAIGN;
  for (const [not_after, now, expected] of [
    [due, due, { total: 0, waiting: 0 }],
    [due + 2, due, { total: 1, waiting: 1, overdue: 0 }],
    [due + 2, due + 1, { total: 1, waiting: 0, overdue: 1 }],
    [due + 2, due + 2, { total: 0, overdue: 0 }],
  ] as const)
    expect(await progressOf(stubStore(certificates(1, not_after)).store, CAMPAIGN, now)).toMatchObject(expected);
});

test('every page counts, and the first hundred overdue certificates are named', async () => {
  const { store } = stubStore(certificates(REPORTED + 2, T0 + 9 * DAY), ['CN=3', 'CN=5']);
  expect(await progressOf(store, CAMPAIGN, T0)).toMatchObject({ total: REPORTED + 2, waiting: REPORTED, failed: 2 });
  const late = await progressOf(store, CAMPAIGN, CAMPAIGN.due + 1);
  expect(late.overdue).toBe(REPORTED + 2);
  expect(late.overdueRows).toHaveLength(REPORTED);
});

test('a campaign is reported after its due time, once, with its CA if it has one, and not if nothing is overdue', async () => {
  const { due, id } = CAMPAIGN;
  const report = async (now: number, count: number, row = CAMPAIGN) => {
    const { store, noted } = stubStore(certificates(count, T0 + 9 * DAY), [], [row]);
    await reportOverdue(store, now);
    return noted;
  };
  const event = { type: 'renewal.overdue', outcome: 'failure', detail: `1 certificates of campaign ${id} are overdue` };
  expect(await report(due, 1)).toEqual([]);
  expect(await report(due + 1, 1, { ...CAMPAIGN, overdue_at: due })).toEqual([]);
  expect(await report(due + 1, 1)).toStrictEqual([[due + 1, [{ ca: 'devices', ...event }]]]);
  expect(await report(due + 1, 1, { ...CAMPAIGN, selection: {} })).toStrictEqual([[due + 1, [event]]]);
  expect(await report(due + 1, 0)).toEqual([[due + 1, []]]);
});
