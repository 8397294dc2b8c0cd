import Database from 'better-sqlite3';
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MIGRATIONS } from '../../../src/store/sqlite/migrations/index.ts';
import { openWritable } from '../../../src/store/sqlite/database.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { opened, otpRow, T0, temporaryPaths } from '../support.ts';

const version = (db: Database.Database): unknown => db.pragma('user_version', { simple: true });

test('the database is in WAL mode, synchronous FULL, with foreign keys', () => {
  const db = openWritable(temporaryPaths().path);
  expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
  expect(db.pragma('synchronous', { simple: true })).toBe(2);
  expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
  expect(version(db)).toBe(MIGRATIONS.length);
  db.close();
});

test('migrations run in order from the version that the database has, and only once', () => {
  const { path } = temporaryPaths();
  const scripts = ['CREATE TABLE a (x)', 'ALTER TABLE a ADD COLUMN y DEFAULT 7', 'INSERT INTO a (x) VALUES (1)'];
  openWritable(path, scripts.slice(0, 1)).close();
  const first = new Database(path);
  first.exec('INSERT INTO a VALUES (0)');
  expect(version(first)).toBe(1);
  first.close();
  for (let n = 0; n < 2; n++) {
    const db = openWritable(path, scripts);
    expect(db.prepare('SELECT x, y FROM a').all()).toEqual([
      { x: 0, y: 7 },
      { x: 1, y: 7 },
    ]);
    expect(version(db)).toBe(3);
    db.close();
  }
});

test('a migration that fails leaves the database as it was, at the version before', () => {
  const { path } = temporaryPaths();
  const scripts = ['CREATE TABLE a (x)', 'CREATE TABLE b (x); INSERT INTO no_such_table VALUES (1)'];
  expect(() => openWritable(path, scripts)).toThrow('no_such_table');
  const db = openWritable(path, scripts.slice(0, 1));
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()).toEqual(['a']);
  expect(version(db)).toBe(1);
  db.close();
});

test('a database of the first version keeps its contents through every later migration', async () => {
  const paths = temporaryPaths();
  const db = openWritable(paths.path, MIGRATIONS.slice(0, 1));
  const row = otpRow();
  db.prepare(
    'INSERT INTO otp (id, selector, hash, client_id, ca, created_at, expires_at, max_uses, uses, revoked_at) VALUES (@id, @lookup, @hash, @client_id, @ca, @created_at, @expires_at, @max_uses, @uses, @revoked_at)',
  ).run(row);
  db.close();
  const store = await opened(paths);
  expect(await store.getOtp(row.id)).toEqual(row);
});

test('a queued request keeps its public key when the column loses NOT NULL', async () => {
  const paths = temporaryPaths();
  const db = openWritable(paths.path, MIGRATIONS.slice(0, 3));
  db.prepare(
    `INSERT INTO request (id, ca, operation, subject, sans, key_type, requester, method, status, created_at, csr,
     spki_sha256, recognition, changed_at) VALUES ('old', 'devices', 'simpleenroll', 'CN=a', '[]', 'ec:P-256', 'a', 'otp',
     'pending', 1, x'30', 'ab', 'same', 1)`,
  ).run();
  db.close();
  const store = await opened(paths);
  expect(await store.findRequest('same')).toMatchObject({ id: 'old', spki_sha256: 'ab' });
});

test('issue 13.1, contract §8.1: queued requests of an older database keep the requesters that can be told, and others become nobody’s', async () => {
  const paths = temporaryPaths();
  const db = openWritable(paths.path, MIGRATIONS.slice(0, 10));
  db.prepare(
    'INSERT INTO otp (id, lookup, hash, client_id, created_at, expires_at, max_uses, uses) VALUES (@id, @lookup, @hash, @client_id, @created_at, @expires_at, 1, 1)',
  ).run({ ...otpRow(), id: 't' });
  const insert = db.prepare(
    `INSERT INTO request (id, ca, operation, subject, sans, key_type, requester, method, status, created_at, csr, otp_id, recognition, changed_at)
     VALUES (?, 'devices', 'simpleenroll', 'CN=a', '[]', 'ec:P-256', ?, ?, ?, ?, x'30', ?, ?, ?)`,
  );
  const rows = [
    ['token', 'a', 'otp', 'pending', 't'],
    ['principal', 'alice@EXAMPLE.COM', 'gssapi', 'approved', null],
    ['secret', 'identification:plant 7', 'cmc', 'pending', null],
    ['cmc certificate', 'CN=a', 'cmc', 'pending', null],
    ['pending certificate', 'CN=a', 'mtls', 'pending', null],
    ['approved certificate', 'CN=a', 'mtls', 'approved', null],
    ['issued certificate', 'CN=a', 'mtls', 'issued', null],
  ] as const;
  for (const [id, requester, method, status, otp] of rows) insert.run(id, requester, method, status, T0, otp, id, T0);
  db.close();
  const store = await opened(paths);
  expect(await store.expireRequests({ pending_ttl: 1000, retention: 1000 }, T0 + 1)).toEqual({ expired: 2, purged: 0 });
  const migrated = await Promise.all(rows.map(async ([id]) => store.getRequest(id)));
  const unattributed = 'asked for before the issuer of a requester was kept; send it again';
  expect(migrated.map((row) => [row?.id, row?.requester_id, row?.status, row?.reason])).toEqual([
    ['token', 'otp:t', 'pending', null],
    ['principal', 'gssapi:alice@EXAMPLE.COM', 'approved', null],
    ['secret', 'cmc:identification:plant 7', 'pending', null],
    ['cmc certificate', null, 'pending', null],
    ['pending certificate', null, 'expired', unattributed],
    ['approved certificate', null, 'expired', unattributed],
    ['issued certificate', null, 'issued', null],
  ]);
  const { items } = await store.listAudit({ limit: 10 });
  expect(items.map(({ type, request_id, detail }) => [type, request_id, detail])).toEqual([
    ['request.expired', 'pending certificate', unattributed],
    ['request.expired', 'approved certificate', unattributed],
  ]);
});

test('a database of a newer program is refused and not touched', async () => {
  const paths = temporaryPaths();
  openWritable(paths.path, [...MIGRATIONS, 'CREATE TABLE future (x)']).close();
  await expect(openStore(paths)).rejects.toMatchObject({
    code: 'STORE_TOO_NEW',
    message: 'the database was made by a newer version of Estuary',
    detail: `${paths.path} has schema version ${MIGRATIONS.length + 1}, this program knows ${MIGRATIONS.length}`,
  });
  const db = new Database(paths.path);
  expect(version(db)).toBe(MIGRATIONS.length + 1);
  db.close();
});

test('a database of another program is refused and not touched', async () => {
  const paths = temporaryPaths();
  const db = new Database(paths.path);
  db.exec('CREATE TABLE theirs (x)');
  await expect(openStore(paths)).rejects.toMatchObject({ code: 'STORE_FOREIGN' });
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()).toEqual(['theirs']);
  expect(db.pragma('journal_mode', { simple: true })).toBe('delete');
  db.close();
});

test('a file that is no database is refused', async () => {
  const paths = temporaryPaths();
  writeFileSync(paths.path, 'not a database, but long enough to look at it as one would at a header\n'.repeat(20));
  await expect(openStore(paths)).rejects.toMatchObject({ status: 500, code: 'STORE_FAILED' });
});

test('several processes that start at once migrate once', async () => {
  const paths = temporaryPaths();
  const stores = await Promise.all(Array.from({ length: 3 }, () => openStore(paths)));
  const row = otpRow();
  await stores[0]?.insertOtp(row, []);
  for (const store of stores) expect(await store.getOtp(row.id)).toEqual(row);
  await Promise.all(stores.map((store) => store.close()));
});
