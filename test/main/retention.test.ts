import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseLine } from '../../src/audit/record.ts';
import { verifyAudit } from '../../src/store/sqlite/read-audit.ts';
import { createLogger } from '../../src/log.ts';
import { purge, type RetentionOptions } from '../../src/main/retention.ts';
import type { Store } from '../../src/store/store.ts';
import { event, issue, opened, otpRow, type Paths, T0, temporaryPaths } from '../store/support.ts';

const DAY = 86_400_000;

interface Set {
  readonly paths: Paths;
  readonly store: Store;
  readonly archive: string;
  /** Lets time pass. */
  readonly later: (days: number) => void;
  readonly purge: (
    days: Partial<RetentionOptions['config']['retention']>,
    run?: Parameters<typeof purge>[1],
  ) => Promise<void>;
}

async function set(over: (store: Store) => Partial<Store> = () => ({})): Promise<Set> {
  const paths = temporaryPaths();
  const archive = join(paths.folder, 'archive');
  let now = T0;
  const store = await opened(paths, () => now);
  const none = { certificates: 0, tokens: 0, requests: 0, devices: 0, audit: 0 };
  return {
    paths,
    store,
    archive,
    later: (days) => (now += days * DAY),
    purge: (days, run) => {
      const config = {
        retention: { ...none, ...days },
        audit: { file: paths.auditFile, archive },
        otp: { retry_window: 3 * 86_400 },
      };
      return purge({ config, store: { ...store, ...over(store) }, log: createLogger('silent'), now: () => now }, run);
    },
  };
}

const verify = ({ paths }: Set) => verifyAudit({ storePath: paths.path, auditFile: paths.auditFile });

/** The `seq` of every record in the archive, file by file. */
const archived = ({ archive }: Set): number[] =>
  readdirSync(archive)
    .toSorted()
    .flatMap((name) => readFileSync(join(archive, name), 'utf8').trimEnd().split('\n'))
    .map((line) => parseLine(line)?.seq ?? -1);

test('audit records are exported, leave the store, and the chain verifies across what is gone', async () => {
  const here = await set();
  for (let n = 0; n < 1200; n++) void here.store.audit([event('auth.otp', { subject: `CN=device-${n}` })]);
  await here.store.audit([event('admin.access')]);
  here.later(10);
  await here.store.audit([event('admin.access')]);
  await here.purge({ audit: 10 });
  expect(existsSync(here.archive), 'nothing is older than ten days').toBe(false);
  here.later(0.5);
  await here.purge({ audit: 10 });
  const [name, ...others] = readdirSync(here.archive);
  expect([name, others]).toEqual(['audit-000000000001-000000001201.jsonl', []]);
  expect(statSync(here.archive).mode & 0o777).toBe(0o700);
  expect(statSync(join(here.archive, name ?? '')).mode & 0o777).toBe(0o600);
  expect(archived(here)).toEqual(Array.from({ length: 1201 }, (_, n) => n + 1));
  const { items } = await here.store.listAudit({ limit: 10 });
  expect(items.map(({ seq, type }) => [seq, type])).toEqual([
    [1202, 'admin.access'],
    [1203, 'audit.archived'],
  ]);
  expect(await verify(here)).toEqual({ ok: true, records: 2, archived: 1201, ahead: 0 });
  // A second time goes on where the first ended.
  here.later(20);
  await here.purge({ audit: 10 });
  expect(archived(here).slice(-2)).toEqual([1202, 1203]);
  expect(await verify(here)).toMatchObject({ ok: true, records: 1, archived: 1203 });
});

test('a purge that a crash interrupts loses nothing, and the next one goes on', async () => {
  const gone = new Error('crash');
  let at: keyof Store | undefined;
  const here = await set((store) => (at === undefined ? {} : { ...store, [at]: () => Promise.reject(gone) }));
  for (let n = 0; n < 9; n++) await here.store.audit([event('auth.otp')]);
  here.later(2);
  for (at of ['auditLines', 'noteArchived', 'purgeArchived'] as const) {
    await expect(here.purge({ audit: 1 })).rejects.toThrow(gone);
    expect(await verify(here)).toMatchObject({ ok: true });
  }
  at = undefined;
  await here.purge({ audit: 1 });
  expect(archived(here)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(await verify(here)).toEqual({ ok: true, records: 1, archived: 9, ahead: 0 });
});

test('records that are no chain stay in the store', async () => {
  const here = await set((store) => ({
    auditLines: async (after, limit) =>
      (await store.auditLines(after, limit)).map((line) => ({
        ...line,
        line: line.line.replace('device-2', 'device-9'),
      })),
  }));
  for (let n = 0; n < 4; n++) await here.store.audit([event('auth.otp', { subject: `device-${n}` })]);
  here.later(2);
  await expect(here.purge({ audit: 1 })).rejects.toMatchObject({ code: 'AUDIT_TAMPERED' });
  expect((await here.store.listAudit({ limit: 10 })).items).toHaveLength(4);
});

test('the hourly look archives once the oldest record is a day too old: a file a day, not one an hour', async () => {
  const here = await set();
  await here.store.audit([event('auth.otp')]);
  here.later(1.5);
  await here.purge({ audit: 1 }, { slack: DAY });
  expect(existsSync(here.archive)).toBe(false);
  here.later(0.6);
  await here.purge({ audit: 1 }, { slack: DAY });
  expect(archived(here)).toEqual([1]);
});

test('certificates and tokens leave after their days; 0 keeps them', async () => {
  const here = await set();
  const { serial } = await issue(here.store, { not_after: T0 });
  const token = otpRow({ expires_at: T0 });
  await here.store.insertOtp(token, []);
  here.later(1000);
  await here.purge({});
  expect(await here.store.getCertificates(serial)).toHaveLength(1);
  await here.purge({ certificates: 1001, tokens: 1001 });
  expect(await here.store.getCertificates(serial)).toHaveLength(1);
  expect(await here.store.getOtp(token.id)).toBeDefined();
  await here.purge({ certificates: 999, tokens: 999 });
  expect(await here.store.getCertificates(serial)).toEqual([]);
  expect(await here.store.getOtp(token.id)).toBeUndefined();
});
