import { expect, test } from 'vitest';
import { auditedCertificate } from '../../src/audit/applied-events.ts';
import type { ListState } from '../../src/auth/mtls/revocation-lists.ts';
import { createLogger } from '../../src/log.ts';
import { Warnings } from '../../src/notification/warnings.ts';
import { Ca } from '../../src/ca/router.ts';
import { CrlPublisher } from '../../src/publication/crl-publisher.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import { fileCa } from '../support/file-ca.ts';
import { fleetOf } from '../support/fleet.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { certificateRow, opened, reservation, temporaryPaths } from '../store/support.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];

test('certificates are announced at each threshold once, and not if a newer one is valid', async () => {
  const clock = { now: Date.now() };
  const store = await opened(temporaryPaths(), () => clock.now);
  const folder = temporaryFolder();
  const ca = await fileCa(folder, 'devices', true);
  const sources = { store, isPublished: true, now: () => clock.now };
  const crls = new CrlPublisher({ ...sources, cas: () => [ca], interval: 3600, log: createLogger('silent') });
  const make = () =>
    new Warnings({
      ...sources,
      fleet: fleetOf(store, () => clock.now),
      cas: { issuers: [ca], all: [ca] },
      clientCrls: () => [],
      crls,
      days: [30, 7, 1],
    });
  let warnings = make();
  const issue = async (more: Partial<CertificateRow>, days: number) => {
    const { ca: of = 'devices', serial } = more;
    const intent = reservation({
      ca: of,
      label: of,
      created_at: clock.now,
      ...(serial === undefined ? {} : { serial }),
    });
    await store.reserve(intent, []);
    const times = { not_before: clock.now, not_after: clock.now + days * DAY };
    const row = certificateRow(intent, { ...times, ...more });
    const issued = { type: 'certificate.issued', outcome: 'success', ...auditedCertificate(row) } as const;
    await store.recordCertificate(row, [issued]);
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
  // The CA's expiry is that of both.
  await issue({ subject: 'CN=clamped', requester: 'clamped' }, 20);
  await issue({ subject: 'CN=clamped', requester: 'CN=clamped' }, 20);
  await issue({ subject: 'CN=tag', device: 'tag', device_key: 'key' }, 20);
  await issue({ subject: 'CN=tag-new', device: 'tag', device_key: 'key' }, 400);
  await issue({ subject: 'CN=only', device: 'only', device_key: 'only' }, 20);
  // Of two CAs.
  await issue({ subject: 'CN=same', requester: 'same', serial: '77' }, 20);
  await issue({ ca: 'guests', subject: 'CN=twin', requester: 'twin', serial: '77' }, 20);
  await issue({ ca: 'guests', subject: 'CN=twin', requester: 'CN=twin' }, 400);
  expect(await announced()).toEqual([
    ['CN=short', 7],
    ['CN=clamped', 30],
    ['CN=only', 30],
    ['CN=same', 30],
  ]);
  const { items } = await store.listAudit({ type: 'certificate.expiring', limit: 100 });
  expect(items.find((item) => item.certificate_subject === 'CN=clamped')?.requester).toBe('CN=clamped');
  expect(await announced()).toEqual([]);
  await issue({ subject: 'CN=late', requester: 'late' }, 2);
  expect(await announced()).toEqual([['CN=late', 7]]);
  clock.now += HOUR;
  expect(await announced()).toEqual([]);
  // As after a restart.
  warnings = make();
  clock.now += HOUR;
  expect(await announced()).toEqual([]);
  clock.now += 4.5 * DAY - 2 * HOUR;
  expect(await announced()).toEqual([['CN=short', 1]]);
  clock.now += 10 * DAY;
  expect(await announced()).toEqual([
    ['CN=long', 30],
    ['CN=clamped', 7],
    ['CN=only', 7],
    ['CN=same', 7],
  ]);
  folder.remove();
});

test('an overdue CRL, an expiring CA and one that cannot issue are announced once, and again after a recovery', async () => {
  const clock = { now: Date.now() };
  const store = await opened(temporaryPaths(), () => clock.now);
  const folder = temporaryFolder();
  const ca = await fileCa(folder, 'devices', true);
  const state = { health: 'ok' as 'ok' | 'down' };
  const { driver } = ca;
  Object.defineProperty(driver, 'health', { value: () => Promise.resolve({ ...state, detail: 'no token' }) });
  const states: ListState[] = [
    { issuer: 'CN=East', nextUpdate: 1 },
    { issuer: 'CN=West', nextUpdate: 1 },
  ];
  const down = () => Promise.resolve({ health: 'down' as const, detail: 'no answer' });
  const issue = () => Promise.reject(new Error('nothing is issued'));
  // Its chain is not known yet.
  const remote = new Ca({ ...ca.config, label: 'remote' }, { chain: () => [], issue });
  // Further labels of the CA.
  const further = (label: string, fault?: string) =>
    new Ca({ ...ca.config, label }, { chain: () => [], issue, health: down }, { issuer: ca, fault });
  const unsigned = new Ca(ca.config, { chain: () => driver.chain(), issue });
  const signer = driver.statusSigner;
  if (signer === undefined) throw new Error('the CA signs no CRLs');
  const options = { store, cas: () => [ca], interval: 3600, log: createLogger('silent'), now: () => clock.now };
  const publisher = new CrlPublisher(options);
  const all = {
    ...options,
    fleet: fleetOf(store, () => clock.now),
    cas: { issuers: [ca, remote], all: [ca, further('sound'), further('faulty', 'its file is gone')] },
    clientCrls: () => states,
    crls: publisher,
    days: [7],
    isPublished: true,
  };
  const warnings = new Warnings(all);
  let seen = 0;
  /** The types of new records. */
  const announced = async (): Promise<readonly string[]> => {
    await warnings.look();
    const { items } = await store.listAudit({ limit: 100 });
    const types = items.map(({ type }) => type).filter((type) => type !== 'crl.issued');
    const fresh = types.slice(seen);
    seen = types.length;
    return fresh;
  };
  await publisher.current(ca, signer);
  expect(await announced()).toEqual(['ca.unavailable']);
  state.health = 'down';
  clock.now += 0.85 * HOUR;
  // It publishes no CRL any more.
  await new Warnings({ ...all, cas: { issuers: [unsigned], all: [] } }).look();
  expect(await announced()).toEqual(['crl.overdue', 'ca.unavailable']);
  expect(await announced()).toEqual([]);
  state.health = 'ok';
  await publisher.current(ca, signer);
  expect(await announced()).toEqual([]);
  state.health = 'down';
  clock.now += 2 * HOUR;
  expect(await announced()).toEqual(['crl.overdue', 'ca.unavailable']);
  states.push({ issuer: 'CN=West', nextUpdate: 0, problem: 'there is no CRL of "CN=West"' });

  expect(await announced()).toEqual(['client_crl.expired']);
  Object.defineProperty(ca, 'ownIsRecorded', { value: true });
  state.health = 'ok';
  expect(await announced()).toEqual([]);
  state.health = 'down';
  expect(await announced()).toEqual(['upstream.unavailable']);
  const end = ca.certificate.notAfter.getTime();
  clock.now = end - 7 * DAY;
  expect(await announced()).toEqual(['ca.expiring']);
  expect(await announced()).toEqual([]);
  // A clock that was wrong.
  clock.now = end - 100 * DAY;
  expect(await announced()).toEqual([]);
  clock.now = end;
  expect(await announced()).not.toContain('ca.expiring');
  folder.remove();
});
