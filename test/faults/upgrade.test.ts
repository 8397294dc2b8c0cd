/**
 * A database that Estuary 0.2.0 wrote (fixtures/0.2.0) is upgraded at the start, also after an upgrade that was killed before its
 * COMMIT. Everything that the database contains is there afterward, and works.
 */
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FIRST_VERSION } from '../../src/store/calls/errors.ts';
import { MIGRATIONS } from '../../src/store/sqlite/schema.ts';
import { MIGRATIONS as POSTGRES_MIGRATIONS } from '../../src/store/postgres/schema.ts';
import { run } from '../support/command.ts';
import { onTheWire, simpleCsr, testKeyOf } from '../support/csr.ts';
import { certificatesOf, Estuary, itemsOf } from '../support/estuary.ts';
import { removeFolder } from '../support/folders.ts';
import { type PostgresCluster, psql, sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';
import { until } from '../support/until.ts';

const FIXTURE = join(ROOT, 'fixtures/0.2.0');

interface Facts {
  readonly unused: { readonly token: string };
  readonly revoked: { readonly id: string };
  readonly waiting: { readonly token: string };
  readonly certificates: Readonly<Record<string, string>>;
  readonly renewed: string;
  readonly request: string;
  readonly records: number;
}

/** A database of 0.2.0, and how to see it from outside. */
interface OldDatabase {
  /** What names it to {@link ../support/interrupted-migration.ts}. */
  readonly name: string;
  readonly latest: number;
  version(): Promise<number>;
  /** Whether a migration has begun and not ended. */
  migrating(): Promise<boolean>;
  /** Ends what a killed migration left in the database server. */
  forget(): Promise<void>;
  start(): Promise<Estuary>;
  remove(): Promise<void>;
}

/** Puts the files that belong to the database next to the configuration. */
function putFiles(driver: 'sqlite' | 'postgres', dir: string): void {
  mkdirSync(join(dir, 'data'), { recursive: true });
  cpSync(join(FIXTURE, driver, 'otp.key'), join(dir, 'otp.key'));
  cpSync(join(FIXTURE, driver, 'audit.jsonl'), join(dir, 'data/audit.log'));
}

function sqlite(): Promise<OldDatabase> {
  const dir = mkdtempSync(join(tmpdir(), 'estuary-0.2.0-'));
  const path = join(dir, 'est.db');
  writeFileSync(path, gunzipSync(readFileSync(join(FIXTURE, 'sqlite/est.db.gz'))), { mode: 0o600 });
  return Promise.resolve({
    name: path,
    latest: FIRST_VERSION + MIGRATIONS.length - 1,
    version: () => {
      const db = new Database(path, { readonly: true });
      const version: unknown = db.pragma('user_version', { simple: true });
      db.close();
      return Promise.resolve(Number(version));
    },
    migrating: () => Promise.resolve(isWriting(path)),
    forget: () => Promise.resolve(),
    start: () =>
      Estuary.start({
        pki: join(FIXTURE, 'pki'),
        configure: (_, folder) => {
          putFiles('sqlite', folder);
          cpSync(path, join(folder, 'data/est.db'));
          cpSync(join(FIXTURE, 'sqlite/lookup.key'), join(folder, 'data/otp-lookup.key'));
        },
      }),
    remove: () => {
      removeFolder(dir);
      return Promise.resolve();
    },
  });
}

/** Whether another process has a transaction that writes. */
function isWriting(path: string): boolean {
  const db = new Database(path, { timeout: 0 });
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    return false;
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return true;
    throw error;
  } finally {
    db.close();
  }
}

async function postgres(): Promise<OldDatabase> {
  const cluster: PostgresCluster = await sharedPostgres();
  const url = await cluster.createDatabase();
  await psql(url, gunzipSync(readFileSync(join(FIXTURE, 'postgres/database.sql.gz'))).toString());
  const others = 'FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()';
  return {
    name: url,
    latest: FIRST_VERSION + POSTGRES_MIGRATIONS.length - 1,
    version: async () => Number((await psql(url, 'SELECT version FROM public.estuary_schema'))[0]?.[0]),
    migrating: async () => (await psql(url, `SELECT 1 ${others} AND query LIKE '%pg_sleep%'`)).length > 0,
    forget: async () => {
      await psql(url, `SELECT pg_terminate_backend(pid) ${others}`);
      await until('no other session', async () => (await psql(url, `SELECT 1 ${others}`)).length === 0);
    },
    start: () =>
      Estuary.start(
        withStoreIn(
          {
            pki: join(FIXTURE, 'pki'),
            configure: (_, folder) => {
              putFiles('postgres', folder);
              cpSync(join(FIXTURE, 'postgres/lookup.key'), join(folder, 'lookup.key'));
            },
          },
          url,
          'node-1',
        ),
      ),
    remove: () => cluster.dropDatabase(url),
  };
}

describe.each([
  { driver: 'sqlite', open: sqlite, skip: false },
  { driver: 'postgres', open: postgres, skip: !requires('postgres') },
])('a database of 0.2.0 in $driver', ({ driver, open, skip }) => {
  const file = (name: string): string => readFileSync(join(FIXTURE, driver, name), 'utf8');
  const facts = JSON.parse(file('facts.json')) as Facts;
  const key = testKeyOf(file('device.key'));
  let database: OldDatabase | undefined;
  let estuary: Estuary | undefined;
  const server = (): Estuary => {
    if (estuary === undefined) throw new Error('the upgraded server did not start');
    return estuary;
  };
  const old = (): OldDatabase => {
    if (database === undefined) throw new Error('there is no database');
    return database;
  };

  beforeAll(async () => {
    if (!skip) database = await open();
  });
  afterAll(async () => {
    await estuary?.stop();
    await database?.remove();
  });

  test.skipIf(skip)('is as it was after an upgrade that is killed before its COMMIT', async () => {
    expect(await old().version()).toBe(FIRST_VERSION);
    const child = spawn(NODE, [join(ROOT, 'test/support/interrupted-migration.ts'), driver, old().name], {
      stdio: 'inherit',
    });
    const gone = new Promise((resolve) => child.once('exit', resolve));
    try {
      await until('the migration has begun', () => old().migrating());
    } finally {
      child.kill('SIGKILL');
      await gone;
    }
    await old().forget();
    expect(await old().migrating()).toBe(false);
    expect(await old().version()).toBe(FIRST_VERSION);
  });

  test.skipIf(skip)('is upgraded at the start, with every record', async () => {
    estuary = await old().start();
    if (driver === 'postgres') expect(await old().version()).toBe(old().latest);
    const list = async (path: string): Promise<Record<string, unknown>[]> =>
      itemsOf((await server().admin('GET', path)).json);
    const certificates = await list('/admin/certificates');
    const states = new Map(certificates.map(({ serial, status, reason }) => [serial, [status, reason]]));
    const { certificates: serials, renewed } = facts;
    expect(['device-1', 'device-5', 'device-6', 'device-7'].map((cn) => states.get(serials[cn]))).toEqual([
      ['valid', null],
      ['revoked', 'keyCompromise'],
      ['revoked', 'certificateHold'],
      ['valid', null],
    ]);
    expect(states.get(renewed)).toEqual(['valid', null]);
    expect(await list('/admin/devices')).toMatchObject([
      { id: 'device-1', ca: null, attributes: { site: 'Berlin' }, note: 'a device of 0.2.0', enabled: true },
      { id: 'device-2', ca: 'lab', enabled: false },
    ]);
    const { json } = await server().admin('GET', `/admin/otp/${facts.revoked.id}`);
    expect(json).toMatchObject({ client_id: 'device-4', status: 'revoked' });
    expect(await list('/admin/requests?status=pending')).toMatchObject([{ id: facts.request, ca: 'lab' }]);
    expect(await list('/admin/renewals')).toMatchObject([{ reason: 'a campaign of 0.2.0' }]);
    expect((await list(`/admin/audit?limit=1000`)).length).toBeGreaterThan(facts.records);
    await run(NODE, [SERVER, 'audit', 'verify', '--config', join(server().dir, 'est.toml')]);
  });

  test.skipIf(skip)('serves what it promised before the upgrade', async () => {
    const issued = async (cn: string, password: string, path = 'simpleenroll'): Promise<number> =>
      (await server().enroll(onTheWire(simpleCsr(key, cn)), { password, path })).status;
    expect(await issued('device-3', facts.unused.token)).toBe(200);

    const renewal = await server().enroll(onTheWire(simpleCsr(key, 'device-1', ['device-1.example.com'])), {
      path: 'simplereenroll',
      client: { cert: file('device.pem'), key: key.pem },
    });
    expect(renewal.status).toBe(200);
    const [der] = certificatesOf(renewal);
    expect(der === undefined ? '' : new X509Certificate(der).subject).toBe('CN=device-1');

    expect(await issued('device-8', facts.waiting.token, 'lab/simpleenroll')).toBe(202);
    const { status } = await server().admin('POST', `/admin/requests/${facts.request}/approve`, {});
    expect(status).toBe(200);
    expect(await issued('device-8', facts.waiting.token, 'lab/simpleenroll')).toBe(200);

    const held = `/admin/certificates/${facts.certificates['device-6'] ?? ''}/release?ca=devices`;
    expect((await server().admin('POST', held, {})).status).toBe(200);
    const revoke = `/admin/certificates/${facts.certificates['device-7'] ?? ''}/revoke?ca=devices`;
    expect((await server().admin('POST', revoke, { reason: 'superseded' })).json).toMatchObject({ status: 'revoked' });
  });
});
