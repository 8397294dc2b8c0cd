import Database from 'better-sqlite3';
import { appendFileSync, linkSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FIRST_VERSION } from '../../../src/store/calls/errors.ts';
import { openWritable, refuseUnusable } from '../../../src/store/sqlite/database.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { MIGRATIONS } from '../../../src/store/sqlite/schema.ts';
import { enrolledInProcesses, opened, T0, temporaryPaths } from '../support.ts';

const LATEST = FIRST_VERSION + MIGRATIONS.length - 1;
const version = (db: Database.Database): unknown => db.pragma('user_version', { simple: true });

test('the database is in WAL mode, synchronous FULL, with foreign keys', () => {
  const db = openWritable(temporaryPaths().path);
  expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
  expect(db.pragma('synchronous', { simple: true })).toBe(2);
  expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
  expect(version(db)).toBe(LATEST);
  db.close();
});

test('migrations run in order from the version that the database has, and only once', () => {
  const { path } = temporaryPaths();
  const scripts = ['CREATE TABLE a (x)', 'ALTER TABLE a ADD COLUMN y DEFAULT 7', 'INSERT INTO a (x) VALUES (1)'];
  openWritable(path, scripts.slice(0, 1)).close();
  const first = new Database(path);
  first.exec('INSERT INTO a VALUES (0)');
  expect(version(first)).toBe(FIRST_VERSION);
  first.close();
  for (let n = 0; n < 2; n++) {
    const db = openWritable(path, scripts);
    expect(db.prepare('SELECT x, y FROM a').all()).toEqual([
      { x: 0, y: 7 },
      { x: 1, y: 7 },
    ]);
    expect(version(db)).toBe(FIRST_VERSION + 2);
    db.close();
  }
});

test('a migration that fails leaves the database as it was, at the version before', () => {
  const { path } = temporaryPaths();
  const scripts = ['CREATE TABLE a (x)', 'CREATE TABLE b (x); INSERT INTO no_such_table VALUES (1)'];
  expect(() => openWritable(path, scripts)).toThrow(
    expect.objectContaining({
      detail: expect.stringContaining(`${path}: SQLITE_ERROR: no such table: no_such_table`) as string,
    }),
  );
  const db = openWritable(path, scripts.slice(0, 1));
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()).toEqual(['a']);
  expect(version(db)).toBe(FIRST_VERSION);
  db.close();
});

test('a database of Estuary 0.1 is refused and not touched', async () => {
  const paths = temporaryPaths();
  const db = new Database(paths.path);
  db.exec('CREATE TABLE otp (x); PRAGMA application_id = 0x45535455; PRAGMA user_version = 25');
  await expect(openStore(paths)).rejects.toMatchObject({
    code: 'STORE_TOO_OLD',
    message: expect.stringMatching(/estuary admin cert import.* 0\.1\.x/) as unknown,
    detail: `${paths.path} has schema version 25, this program knows ${LATEST}`,
  });
  expect(version(db)).toBe(25);
  db.close();
});

test('a database of a newer program is refused and not touched', async () => {
  const paths = temporaryPaths();
  openWritable(paths.path, [...MIGRATIONS, 'CREATE TABLE future (x)']).close();
  await expect(openStore(paths)).rejects.toMatchObject({
    code: 'STORE_TOO_NEW',
    message: 'a newer version of Estuary created the database',
    detail: `${paths.path} has schema version ${LATEST + 1}, this program knows ${LATEST}. Install that version, or restore a backup from before the upgrade`,
  });
  const db = new Database(paths.path);
  expect(version(db)).toBe(LATEST + 1);
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
  await expect(openStore(paths)).rejects.toMatchObject({
    status: 500,
    code: 'STORE_FAILED',
    detail: `${paths.path}: SQLITE_NOTADB: file is not a database. Restore a backup with "estuary restore"`,
  });
});

test('several processes that start at once migrate once', async () => {
  const paths = temporaryPaths();
  expect(await enrolledInProcesses(paths, 3)).toEqual([0, 0, 0]);
  const store = await opened(paths);
  expect((await store.listCertificates({ limit: 10 }, T0)).items).toHaveLength(3);
});

test.each<[string, (path: string, auditFile: string) => void, object]>([
  [
    'pages that a start does not read are damaged',
    (path) => {
      const content = readFileSync(path);
      content.fill(0x5a, content.length - 3 * 4096);
      writeFileSync(path, content);
    },
    {
      code: 'STORE_FAILED',
      detail: expect.stringMatching(/page .*\. Restore a backup with "estuary restore"$/) as string,
    },
  ],
  [
    'its end is missing',
    (path) => truncateSync(path, 20 * 4096),
    { code: 'STORE_FAILED', detail: expect.stringContaining('SQLITE_CORRUPT') as string },
  ],
  [
    'another program made it',
    (path) => {
      const db = new Database(path);
      db.pragma('application_id = 7');
      db.close();
    },
    { code: 'STORE_FOREIGN' },
  ],
  [
    'a newer program made it',
    (path) => openWritable(path, [...MIGRATIONS, 'CREATE TABLE future (x)']).close(),
    { code: 'STORE_TOO_NEW' },
  ],
  ['it has a second name', (path) => linkSync(path, `${path}.copy`), { code: 'STORE_HARD_LINKS' }],
  ['it lacks records of the audit file', (path) => writeFileSync(path, ''), { code: 'STORE_BEHIND' }],
  ['the audit file is cut', (_, audit) => truncateSync(audit, statSync(audit).size - 9), { code: 'AUDIT_TAMPERED' }],
  ['the audit file has a damaged end', (_, audit) => appendFileSync(audit, 'damaged\n'), { code: 'AUDIT_TAMPERED' }],
])('a database is found unusable before a start that would refuse it: %s', async (_, spoil, refusal) => {
  const { path, auditFile } = temporaryPaths();
  const store = await openStore({ path, auditFile });
  for (let n = 0; n < 2; n++) await store.audit([{ type: 'service.start', outcome: 'success' }]);
  expect(() => {
    refuseUnusable(path, auditFile);
  }).not.toThrow();
  await store.close();
  spoil(path, auditFile);
  expect(() => {
    refuseUnusable(path, auditFile);
  }).toThrow(expect.objectContaining(refusal));
});

test('a database that does not exist yet, or has no schema yet, is usable', () => {
  const { path, auditFile } = temporaryPaths();
  refuseUnusable(path, auditFile);
  writeFileSync(path, '');
  refuseUnusable(path, auditFile);
  expect(readFileSync(path)).toHaveLength(0);
});
