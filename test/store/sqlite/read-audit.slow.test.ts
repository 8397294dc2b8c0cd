/**
 * What `audit verify` finds in a changed audit file or store.
 *
 * Longer than other files: the ways to tamper with a log are to be seen side by side, on one log that is made once.
 */
import Database from 'better-sqlite3';
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ArchivedRange } from '../../../src/audit/event.ts';
import { chain, parseLine } from '../../../src/audit/record.ts';
import type { AuditVerdict } from '../../../src/audit/chain-check.ts';
import { verifyAudit } from '../../../src/store/sqlite/read-audit.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { event, opened, type Paths, temporaryPaths } from '../support.ts';

const RECORDS = 8;

/** Made once: a database, and the audit file that belongs to it. */
let template: { database: Buffer; audit: Buffer };

beforeAll(async () => {
  const folder = temporaryFolder();
  const paths = { path: folder.file('est.db'), auditFile: folder.file('audit.log') };
  const store = await openStore(paths);
  for (let n = 1; n <= RECORDS; n++) await store.audit([event('auth.otp', { subject: `CN=device-${n}` })]);
  await store.close();
  template = { database: readFileSync(paths.path), audit: readFileSync(paths.auditFile) };
  folder.remove();
});

/** A closed store with eight audit records. */
function written(): Paths {
  const paths = temporaryPaths();
  writeFileSync(paths.path, template.database);
  writeFileSync(paths.auditFile, template.audit);
  return paths;
}

const verify = (paths: Paths): Promise<AuditVerdict> =>
  verifyAudit({ storePath: paths.path, auditFile: paths.auditFile });

function inStore(paths: Paths, sql: string): void {
  const db = new Database(paths.path);
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

function inFile(paths: Paths, change: (lines: string[]) => readonly string[]): void {
  const lines = readFileSync(paths.auditFile, 'utf8').split('\n').slice(0, -1);
  writeFileSync(
    paths.auditFile,
    change(lines)
      .map((line) => `${line}\n`)
      .join(''),
  );
}

/** A record with the same position in the chain and a valid hash, but other content. */
function forged(line: string): string {
  const record = parseLine(line);
  if (record === undefined) throw new Error('no record');
  const head = { seq: record.seq - 1, hash: record.prev_hash };
  return chain(head, event('auth.otp', { subject: 'CN=somebody-else' }), record.time).line;
}

test('an untouched log verifies, closed and while a server writes', async () => {
  const paths = written();
  expect(await verify(paths)).toEqual({ ok: true, records: RECORDS, ahead: 0 });
  const store = await opened(paths);
  const stop = new AbortController();
  const write = async (): Promise<void> => {
    while (!stop.signal.aborted)
      await Promise.all(Array.from({ length: 5 }, () => store.audit([event('admin.access')])));
  };
  const writing = write();
  for (let n = 0; n < 10; n++) expect(await verify(paths)).toMatchObject({ ok: true });
  stop.abort();
  await writing;
  const total = (await store.listAudit({ limit: 100_000 })).items.length;
  expect(await verify(paths)).toEqual({ ok: true, records: total, ahead: 0 });
});

test('an empty log verifies', async () => {
  const paths = temporaryPaths();
  await (await opened(paths)).close();
  expect(await verify(paths)).toEqual({ ok: true, records: 0, ahead: 0 });
});

test.each<[string, number, string, string]>([
  ['a changed field', 3, 'changed', "UPDATE audit SET line = replace(line, 'device-3', 'device-9') WHERE seq = 3"],
  ['a changed outcome', 4, 'changed', `UPDATE audit SET line = replace(line, 'success', 'failure') WHERE seq = 4`],
  ['a changed time column', 5, 'changed', 'UPDATE audit SET time = time - 1000 WHERE seq = 5'],
  ['a changed type column', 5, 'changed', "UPDATE audit SET type = 'auth.admin' WHERE seq = 5"],
  ['the first record removed', 1, 'missing', 'DELETE FROM audit WHERE seq = 1'],
  ['a record removed', 4, 'missing', 'DELETE FROM audit WHERE seq = 4'],
  [
    'a record removed and the others renumbered',
    4,
    'order',
    'DELETE FROM audit WHERE seq = 4; UPDATE audit SET seq = seq - 1 WHERE seq > 4',
  ],
  ['the last record removed', 8, 'missing', 'DELETE FROM audit WHERE seq = 8'],
  ['all records removed', 1, 'missing', 'DELETE FROM audit'],
  [
    'two records exchanged',
    3,
    'order',
    `CREATE TEMP TABLE t AS SELECT * FROM audit WHERE seq IN (3, 4);
     UPDATE audit SET line = (SELECT line FROM t WHERE seq = 7 - audit.seq) WHERE seq IN (3, 4)`,
  ],
  [
    'a record inserted',
    4,
    'order',
    `UPDATE audit SET seq = -seq WHERE seq >= 4; UPDATE audit SET seq = 1 - seq WHERE seq < 0;
     INSERT INTO audit (seq, time, type, line) SELECT 4, time, type, line FROM audit WHERE seq = 3`,
  ],
  [
    'a record inserted at the end',
    9,
    'inserted',
    'INSERT INTO audit (seq, time, type, line) SELECT 9, time, type, line FROM audit WHERE seq = 8',
  ],
  [
    'the end of the chain set back',
    8,
    'inserted',
    `UPDATE audit_head SET seq = 7, hash = (SELECT substr(line, -66, 64) FROM audit WHERE seq = 7)`,
  ],
  ['the end of the chain lost', -1, 'end of the audit chain', 'DELETE FROM audit_head'],
])('in the store, %s is found', async (_name, seq, problem, sql) => {
  const paths = written();
  inStore(paths, sql);
  const verdict = await verify(paths);
  expect(verdict).toMatchObject({ ok: false, seq: seq === -1 ? null : seq });
  expect(verdict.ok ? '' : verdict.problem).toContain(problem);
});

/** Adds records to a closed store, and indexes all of them for searches. */
async function indexed(paths: Paths): Promise<void> {
  const store = await openStore(paths);
  await store.audit(['CN=\0a\ud800É', 'x', 'İ😀"'].map((subject) => event('auth.otp', { subject })));
  for (let n = 0; n < 4096; n += 256)
    await store.audit(Array.from({ length: 256 }, () => event('certificate.issued', { serial: '0a', ca: 'devices' })));
  while (await store.indexForSearch());
  await store.close();
}

describe('a record that searches no longer find is found', () => {
  let whole: typeof template;
  beforeAll(async () => {
    const folder = temporaryFolder();
    const paths = { folder: folder.path, path: folder.file('est.db'), auditFile: folder.file('audit.log') };
    writeFileSync(paths.path, template.database);
    writeFileSync(paths.auditFile, template.audit);
    await indexed(paths);
    expect(await verify(paths)).toMatchObject({ ok: true });
    whole = { database: readFileSync(paths.path), audit: readFileSync(paths.auditFile) };
    folder.remove();
  });

  test.each<[string, number, string]>([
    ['indexed', 7, 'UPDATE audit SET indexed = 0 WHERE seq = 7'],
    ['indexed', RECORDS + 4100, "UPDATE search_progress SET upto = 1000000 WHERE list = 'audit'"],
    ['subject', 5, "DELETE FROM audit_subject WHERE subject = 'CN=device-5'"],
    ['subject', 5, "UPDATE audit_subject SET id = 99 WHERE subject = 'CN=device-5'"],
    ['subject', 5, "UPDATE audit_subject SET subject = 'CN=nobody' WHERE subject = 'CN=device-5'"],
    [
      'subject',
      6,
      "DELETE FROM audit_subject_names WHERE rowid = (SELECT id FROM audit_subject WHERE subject = 'CN=device-6')",
    ],
    ['time', 1, 'UPDATE search_zone SET high = low - 1'],
    ['time', 1, 'UPDATE search_zone SET last = 1000000, first = 900000'],
    ['time', 4097, "INSERT INTO search_zone VALUES ('audit.time', 4097, 8192, 0, 0)"],
  ])('column %s of record %i: %s', async (column, seq, sql) => {
    const paths = temporaryPaths();
    writeFileSync(paths.path, whole.database);
    writeFileSync(paths.auditFile, whole.audit);
    inStore(paths, sql);
    if (seq > RECORDS + 4099) {
      const store = await openStore(paths);
      await store.audit([event('certificate.issued', { serial: '0b' })]);
      await store.close();
    }
    const problem = `record ${seq} in the store was changed: its column "${column}" differs from the record`;
    expect(await verify(paths)).toEqual({ ok: false, seq, problem });
  });

  test.each(['subject', 'ca', 'serial', 'request_id', 'device_key'])(
    'an index of another field than %s',
    async (name) => {
      const paths = written();
      const db = new Database(paths.path);
      db.unsafeMode(true);
      db.pragma('writable_schema = ON');
      db.prepare('UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = ?').run(
        `'$.${name}'`,
        "'$.nothing'",
        `audit_by_${name}`,
      );
      db.close();
      const problem = `the index of "${name}" in the store was changed or removed: no query solution`;
      expect(await verify(paths)).toEqual({ ok: false, seq: null, problem });
    },
  );
});

test.each<[string, number, string, (lines: string[]) => readonly string[]]>([
  ['a changed field', 3, 'changed', (lines) => lines.map((line) => line.replace('device-3', 'device-9'))],
  [
    'a changed hash',
    3,
    'changed',
    (lines) =>
      lines.map((line, n) => (n === 2 ? line.replace(/.(?="}$)/, (digit) => (digit === '0' ? '1' : '0')) : line)),
  ],
  [
    'a forged record with a fitting hash',
    5,
    'replaced',
    (lines) => lines.map((line, n) => (n === 4 ? forged(line) : line)),
  ],
  ['the first record removed', 1, 'missing', (lines) => lines.slice(1)],
  ['a record removed', 4, 'missing', (lines) => lines.filter((_line, n) => n !== 3)],
  ['the last record removed', 8, 'cut short', (lines) => lines.slice(0, -1)],
  ['the last five records removed', 4, 'cut short', (lines) => lines.slice(0, 3)],
  ['all records removed', 1, 'missing or empty', () => []],
  [
    'two records exchanged',
    3,
    'missing',
    (lines) => [...lines.slice(0, 2), ...lines.slice(2, 4).reverse(), ...lines.slice(4)],
  ],
  ['a record given twice', 4, 'again', (lines) => [...lines.slice(0, 3), ...lines.slice(2)]],
  ['a line inserted', 2, 'changed', (lines) => [...lines.slice(0, 1), 'hello', ...lines.slice(1)]],
  ['an empty line inserted', 2, 'changed', (lines) => [...lines.slice(0, 1), '', ...lines.slice(1)]],
  ['a line appended', 9, 'does not follow', (lines) => [...lines, 'hello']],
  ['the last record appended again', 9, 'does not follow', (lines) => [...lines, ...lines.slice(-1)]],
])('in the audit file, %s is found', async (_name, seq, problem, change) => {
  const paths = written();
  inFile(paths, change);
  const verdict = await verify(paths);
  expect(verdict).toMatchObject({ ok: false, seq });
  expect(verdict.ok ? '' : verdict.problem).toContain(problem);
});

test('in the audit file, a record cut in the middle is found', async () => {
  const paths = written();
  const text = readFileSync(paths.auditFile);
  writeFileSync(paths.auditFile, text.subarray(0, text.length - 20));
  expect(await verify(paths)).toEqual({ ok: false, seq: 8, problem: 'record 8 in the audit file is cut short' });
});

test('a missing audit file is found', async () => {
  const paths = written();
  rmSync(paths.auditFile);
  expect(await verify(paths)).toMatchObject({ ok: false, seq: 1 });
});

test('a record replaced by a forged one in the store and in the file is found at the one behind it', async () => {
  const paths = written();
  let line = '';
  inFile(paths, (lines) => lines.map((old, n) => (n === 4 ? (line = forged(old)) : old)));
  inStore(paths, `UPDATE audit SET line = '${line}' WHERE seq = 5`);
  const size = readFileSync(paths.auditFile).length;
  inStore(paths, `UPDATE audit_head SET file_size = ${size}`);
  const verdict = await verify(paths);
  expect(verdict).toMatchObject({ ok: false, seq: 6 });
  expect(verdict.ok ? '' : verdict.problem).toContain('does not follow record 5');
});

test('lines that a crash left ahead of the store are no damage; nor is an unfinished one', async () => {
  const paths = written();
  const last = parseLine(readFileSync(paths.auditFile, 'utf8').trimEnd().split('\n').at(-1) ?? '');
  if (last === undefined) throw new Error('no record');
  appendFileSync(paths.auditFile, `${chain(last, event('otp.used'), Date.now()).line}\n{"seq":10,"ti`);
  expect(await verify(paths)).toEqual({ ok: true, records: RECORDS, ahead: 1 });
});

test('after a rotation the chain goes on in the new file, and the former one is not needed', async () => {
  const paths = written();
  renameSync(paths.auditFile, `${paths.auditFile}.1`);
  const store = await opened(paths);
  await store.audit([event('service.start')]);
  expect(await verify(paths)).toEqual({ ok: true, records: RECORDS + 2, ahead: 0 });
  inFile(paths, (lines) => lines.slice(1));
  expect(await verify(paths)).toMatchObject({ ok: false, seq: RECORDS + 1 });
});

describe('records that were archived', () => {
  const ARCHIVED = 5;

  /** A store whose first five records are gone, with the record that says so, if any. */
  async function archived(change: (hash: string) => Partial<ArchivedRange> | undefined = () => ({})): Promise<Paths> {
    const paths = written();
    const line = readFileSync(paths.auditFile, 'utf8').split('\n')[ARCHIVED - 1] ?? '';
    const hash = parseLine(line)?.hash ?? '';
    const range = change(hash);
    const store = await openStore(paths);
    await store.audit([
      range === undefined
        ? event('audit.archived')
        : event('audit.archived', { archived: { first: 1, last: ARCHIVED, hash, ...range } }),
    ]);
    await store.close();
    inStore(paths, `DELETE FROM audit WHERE seq <= ${ARCHIVED}`);
    return paths;
  }

  test('the chain verifies across them, with their lines in the audit file and without', async () => {
    const paths = await archived();
    const verdict = { ok: true, records: RECORDS + 1 - ARCHIVED, archived: ARCHIVED, ahead: 0 };
    expect(await verify(paths)).toEqual(verdict);
    renameSync(paths.auditFile, `${paths.auditFile}.1`);
    const store = await openStore(paths);
    await store.audit([event('service.start')]);
    await store.close();
    expect(await verify(paths)).toEqual({ ...verdict, records: verdict.records + 2 });
  });

  test.each<[string, number, (hash: string) => Partial<ArchivedRange> | undefined]>([
    ['no range', 1, () => undefined],
    ['an earlier end', 1, () => ({ last: ARCHIVED - 1 })],
    ['a later end', ARCHIVED + 1, () => ({ last: ARCHIVED + 1 })],
    ['another hash', ARCHIVED, (hash) => ({ hash: hash.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) })],
  ])('a record that says so with %s does not stand for them', async (_name, seq, change) => {
    expect(await verify(await archived(change))).toMatchObject({ ok: false, seq });
  });

  test('it verifies while they leave the store little by little, and a change of one that has not left is found', async () => {
    const halfway = async (): Promise<Paths> => {
      const paths = written();
      const lines = readFileSync(paths.auditFile, 'utf8').split('\n');
      const store = await openStore(paths);
      const hash = parseLine(lines[ARCHIVED - 1] ?? '')?.hash ?? '';
      await store.audit([event('audit.archived', { archived: { first: 1, last: ARCHIVED, hash } })]);
      await store.close();
      inStore(paths, 'DELETE FROM audit WHERE seq <= 2');
      return paths;
    };
    const verdict = { ok: true, records: RECORDS + 1 - 2, archived: 2, ahead: 0 };
    expect(await verify(await halfway())).toEqual(verdict);
    const changed = await halfway();
    inStore(changed, "UPDATE audit SET line = replace(line, 'device-4', 'device-9') WHERE seq = 4");
    expect(await verify(changed)).toMatchObject({ ok: false, seq: 4 });
    const removed = await halfway();
    inStore(removed, 'DELETE FROM audit WHERE seq = 4');
    expect(await verify(removed)).toMatchObject({ ok: false, seq: 4 });
  });

  test('one more record removed is found, and a change of their lines in the audit file', async () => {
    const paths = await archived();
    inStore(paths, `DELETE FROM audit WHERE seq = ${ARCHIVED + 1}`);
    expect(await verify(paths)).toMatchObject({ ok: false, seq: 1 });
    const other = await archived();
    inFile(other, (lines) => lines.map((line) => line.replace('device-3', 'device-9')));
    expect(await verify(other)).toMatchObject({ ok: false, seq: 3 });
    const forgery = await archived();
    inFile(forgery, (lines) => lines.map((line, n) => (n === 2 ? forged(line) : line)));
    expect(await verify(forgery)).toMatchObject({ ok: false, seq: 4 });
    const end = await archived();
    inFile(end, (lines) => lines.map((line, n) => (n === ARCHIVED - 1 ? forged(line) : line)));
    expect(await verify(end)).toMatchObject({ ok: false, seq: ARCHIVED });
  });
});
