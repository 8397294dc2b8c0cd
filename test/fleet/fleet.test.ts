/** Holders that enter a state are reported once: one by one, or by their number. */
import { afterEach, expect, test } from 'vitest';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { openWritable } from '../../src/store/sqlite/database.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { certificateRow, reservation, T0 } from '../store/rows.ts';
import { auditedCertificate } from '../../src/audit/applied-events.ts';
import { fleetOf } from '../support/fleet.ts';
import { temporaryFolder } from '../support/openssl.ts';

const DAY = 86_400_000;
const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

interface World {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly at: (time: number) => void;
  readonly sql: (statement: string) => void;
}

async function world(): Promise<World> {
  const folder = temporaryFolder();
  let time = T0;
  const now = () => time;
  const store = await openStore({ path: folder.file('est.db'), auditFile: folder.file('audit.log'), now });
  cleanUps.push(async () => {
    await store.close();
    folder.remove();
  });
  const fleet = fleetOf(store, now, { reports: true });
  const sql = (statement: string): void => {
    const db = openWritable(folder.file('est.db'));
    db.exec(statement);
    db.close();
  };
  return { store, fleet, at: (next) => (time = next), sql };
}

async function issue(store: Store, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const intent = reservation({ subject: `CN=${name}`, created_at: T0 });
    await store.reserve(intent, []);
    const row = certificateRow(intent, { not_before: T0, not_after: T0 + 10 * DAY });
    const issued = { type: 'certificate.issued', outcome: 'success', ...auditedCertificate(row) } as const;
    await store.recordCertificate(row, [issued]);
  }
}

const numbered = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `press-${n}`);

async function caughtUp(fleet: Fleet): Promise<void> {
  while (!(await fleet.catchUp()));
}

const reports = async (store: Store) =>
  (await store.listAudit({ limit: 500 })).items.filter(({ type }) => type.startsWith('holder.'));

test('what existed at the first start is not reported; each later state is, once, with the fields of the list', async () => {
  const { store, fleet, at } = await world();
  await issue(store, ['old']);
  at(T0 + 9.5 * DAY);
  await caughtUp(fleet);
  expect((await fleet.list({ limit: 9 })).items).toMatchObject([{ state: 'late', subject: 'CN=old' }]);
  await issue(store, ['new']);
  await caughtUp(fleet);
  await fleet.report();
  expect(await reports(store)).toEqual([]);
  at(T0 + 9.5 * DAY + 6000);
  await fleet.report();
  await fleet.report();
  expect(await reports(store)).toMatchObject([
    { type: 'holder.late', ca: 'devices', holder: { state: 'late', subject: 'CN=new', ca: 'devices', device: null } },
  ]);
});

test('more than 100 of a label within a minute are one event with their number', async () => {
  const { store, fleet, at } = await world();
  await caughtUp(fleet);
  await issue(store, numbered(101));
  await caughtUp(fleet);
  expect((await fleet.summary()).labels).toMatchObject({ devices: { ok: 101, late: 0 } });
  at(T0 + 9.5 * DAY);
  await caughtUp(fleet);
  await fleet.report();
  expect(await reports(store)).toMatchObject([{ type: 'holder.late', ca: 'devices', count: 101 }]);
  expect((await fleet.summary()).expiring).toEqual({ '1': 101, '7': 101, '30': 101 });
});

test('a node of version 0.2 on the same database, which notes no time of issuance, leaves every state right', async () => {
  const { store, fleet, at, sql } = await world();
  await caughtUp(fleet);
  await issue(store, ['press-1', 'press-2']);
  sql('UPDATE certificate SET issued_at = NULL');
  await caughtUp(fleet);
  const states = async () => (await fleet.list({ limit: 9 })).items.map(({ subject, state }) => [subject, state]);
  expect(await states()).toEqual([
    ['CN=press-1', 'ok'],
    ['CN=press-2', 'ok'],
  ]);
  at(T0 + 9 * DAY);
  await issue(store, ['press-1']);
  sql('UPDATE certificate SET issued_at = NULL, not_before = not_before + 1 WHERE position = 3');
  at(T0 + 9.5 * DAY);
  await caughtUp(fleet);
  expect((await fleet.summary()).labels).toMatchObject({ devices: { late: 2 } });
  at(T0 + 11 * DAY);
  await caughtUp(fleet);
  expect(await states()).toEqual([
    ['CN=press-1', 'expired'],
    ['CN=press-2', 'expired'],
  ]);
});
