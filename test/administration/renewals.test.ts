import { expect, test } from 'vitest';
import { NAMED, progressOf, reportOverdue } from '../../src/administration/renewals.ts';
import { auditedCertificate } from '../../src/audit/applied-events.ts';
import type { AuditEvent } from '../../src/audit/event.ts';
import type { CertificateRow, ListedCertificate } from '../../src/store/certificate-store.ts';
import type { RenewalRow } from '../../src/store/renewal-store.ts';
import { fleetOf } from '../support/fleet.ts';
import { auditTypes } from '../store/contract/support.ts';
import { T0 } from '../store/rows.ts';
import { certificateRow, opened, reservation, temporaryPaths } from '../store/support.ts';

const DAY = 86_400_000;

test('certificates that are not replaced in time are overdue, and are reported once', async () => {
  const store = await opened(temporaryPaths());
  const fleet = fleetOf(store, () => T0 + 2000);
  const begins = T0 + 1000;
  /** @param renewing the certificate that the request was sent with */
  const issue = async (subject: string, created_at: number, more: Partial<CertificateRow> = {}, renewing?: string) => {
    const intent = reservation({ ca: 'devices', created_at });
    await store.reserve(intent, []);
    const row = certificateRow(intent, { subject, sans: ['DNS:a'], not_before: T0, not_after: T0 + 90 * DAY, ...more });
    const { request_id } = intent;
    const operation = renewing === undefined ? 'simpleenroll' : 'simplereenroll';
    await store.recordCertificate(row, [
      { type: 'auth.mtls', outcome: 'success', request_id, ...(renewing !== undefined && { serial: renewing }) },
      {
        ...auditedCertificate(row),
        type: 'certificate.issued',
        outcome: 'success',
        request_id,
        operation,
        method: 'mtls',
      },
    ]);
    return row.serial;
  };
  const revoke = (serial: string) =>
    store.revokeCertificate({ ca: 'devices', serial, revoked_at: T0, reason: 'superseded', invalidity_date: null }, []);
  const renamed = await issue('CN=old name', T0);
  for (const subject of ['CN=late', 'CN=revoked']) await issue(subject, T0);
  await revoke(await issue('CN=gone', T0));
  await issue('CN=device', T0, { device: 'tag-1', device_key: 'key-1' });
  await issue('CN=replaced before', T0 - 1);
  await issue('CN=replaced before', T0);
  const row = { id: 'one', selection: { ca: 'devices' }, begins, due: begins + 1000, created_by: 'Ada' };
  await store.startRenewal({ ...row, reason: null, explanation_url: null, overdue_at: null }, []);
  const [campaign] = await store.listRenewals();
  if (campaign === undefined) throw new Error('not started');
  const progress = async (now: number) => {
    while (!(await fleet.catchUp()));
    return progressOf(store, campaign, now);
  };
  expect(await progress(begins)).toMatchObject({ total: 6, waiting: 5, replaced: 1, failed: 0, overdue: 0 });
  await issue('CN=replaced before', begins + 1, { sans: ['DNS:A'] });
  await issue('CN=new name', begins + 1, {}, renamed);
  await issue('CN=of the same device', begins + 1, { device: 'tag-1', device_key: 'key-1' });
  await revoke(await issue('CN=revoked', begins + 1));
  const late = await progress(campaign.due + 1);
  expect(late).toMatchObject({ total: 6, replaced: 3, waiting: 0, overdue: 3 });
  expect(late.rows.overdue.map(({ subject }) => subject)).toEqual(['CN=late', 'CN=revoked', 'CN=device']);
  for (let n = 0; n < 2; n++) await reportOverdue(store, await store.listRenewals(), campaign.due + 1);
  expect((await auditTypes(store)).filter((type) => type === 'renewal.overdue')).toHaveLength(1);
});

test('a rejected renewal is a failure of its holder, since the start of the campaign, and of no other with its subject', async () => {
  const store = await opened(temporaryPaths());
  const fleet = fleetOf(store, () => T0 + 9000);
  const rows: CertificateRow[] = [];
  for (const sans of [['DNS:a'], ['DNS:b']]) {
    const intent = reservation({ ca: 'devices', created_at: T0 });
    await store.reserve(intent, []);
    const row = certificateRow(intent, { subject: '', sans, not_before: T0, not_after: T0 + 90 * DAY });
    await store.recordCertificate(row, []);
    rows.push(row);
  }
  const [first] = rows;
  const certificate = { serial: first?.serial ?? '', fingerprints: [first?.fingerprint_sha256 ?? ''] };
  while (!(await fleet.catchUp()));
  const reject = (at: number) => fleet.reject([{ at, code: 'SAN_MISMATCH', message: 'no', certificate }]);
  const campaign = { ...CAMPAIGN, begins: T0 + 10 };
  await reject(T0 + 9);
  expect(await progressOf(store, campaign, T0 + 20)).toMatchObject({ waiting: 2, failed: 0 });
  await reject(T0 + 10);
  const progress = await progressOf(store, campaign, T0 + 20);
  expect(progress).toMatchObject({ total: 2, waiting: 1, failed: 1 });
  expect(progress.rows.failed.map(({ serial }) => serial)).toEqual([certificate.serial]);
});

const CAMPAIGN: RenewalRow = {
  ...{ id: 'one', selection: { ca: 'devices' }, begins: T0, due: T0 + DAY, overdue_at: null },
  ...{ created_by: 'Ada', reason: null, explanation_url: null },
};

/** A store with these certificates, one a page. */
function stubStore(listed: readonly Partial<ListedCertificate>[], failed: readonly string[] = []) {
  const page = <T>(all: readonly T[], cursor: string | undefined) => {
    const at = Number(cursor ?? 0);
    return Promise.resolve({ items: all.slice(at, at + 1), next_cursor: at + 1 < all.length ? `${at + 1}` : null });
  };
  const noted: [number, readonly AuditEvent[]][] = [];
  const store = {
    listCertificates: ({ cursor }: { cursor?: string }) => page(listed, cursor),
    listSuccessions: (serials: readonly string[]) => {
      const succession = { ca: 'devices', issued_at: T0, replaced: 0 };
      return Promise.resolve(
        serials.map((serial) => ({ ...succession, serial, last_failed_at: failed.includes(serial) ? T0 : null })),
      );
    },
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
  const { store } = stubStore(certificates(NAMED + 2, T0 + 9 * DAY), ['3', '5']);
  expect(await progressOf(store, CAMPAIGN, T0)).toMatchObject({ total: NAMED + 2, waiting: NAMED, failed: 2 });
  const late = await progressOf(store, CAMPAIGN, CAMPAIGN.due + 1);
  expect(late.overdue).toBe(NAMED + 2);
  expect(late.rows.overdue).toHaveLength(NAMED);
});

test('a campaign is reported after its due time, once, with its CA if it has one, and not if nothing is overdue', async () => {
  const { due, id } = CAMPAIGN;
  const report = async (now: number, count: number, row = CAMPAIGN) => {
    const { store, noted } = stubStore(certificates(count, T0 + 9 * DAY));
    await reportOverdue(store, [row], now);
    return noted;
  };
  const event = { type: 'renewal.overdue', outcome: 'failure', detail: `1 certificates of campaign ${id} are overdue` };
  expect(await report(due, 1)).toEqual([]);
  expect(await report(due + 1, 1, { ...CAMPAIGN, overdue_at: due })).toEqual([]);
  expect(await report(due + 1, 1)).toStrictEqual([[due + 1, [{ ca: 'devices', ...event }]]]);
  expect(await report(due + 1, 1, { ...CAMPAIGN, selection: {} })).toStrictEqual([[due + 1, [event]]]);
  expect(await report(due + 1, 0)).toEqual([[due + 1, []]]);
});
