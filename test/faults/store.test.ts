import Database from 'better-sqlite3';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test as anyTest } from 'vitest';
import { verifyAudit } from '../../src/store/sqlite/read-audit.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { requires } from '../support/requires.ts';
import {
  auditTypes,
  certificateRow,
  event,
  opened,
  otpRow,
  type Paths,
  reservation,
  T0,
  temporaryPaths,
} from '../store/support.ts';

const test = anyTest.skipIf(!requires('storeInFile'));

const WRITER = join(import.meta.dirname, '..', 'store', 'writer-process.ts');

function inDatabase(paths: Paths, sql: string): void {
  const db = new Database(paths.path);
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

async function verified(paths: Paths): Promise<void> {
  const verdict = await verifyAudit({ storePath: paths.path, auditFile: paths.auditFile });
  expect(verdict).toMatchObject({ ok: true, ahead: 0 });
}

/** A store with a token, and how it is left when nothing has happened. */
async function withToken(paths: Paths): Promise<{ store: Store; otp_id: string; untouched: () => Promise<void> }> {
  const store = await opened(paths);
  const row = otpRow();
  await store.insertOtp(row, [event('otp.created')]);
  const audited = await auditTypes(store);
  const file = existsSync(paths.auditFile) ? readFileSync(paths.auditFile, 'utf8') : '';
  return {
    store,
    otp_id: row.id,
    async untouched() {
      expect(await store.getOtp(row.id)).toEqual(row);
      expect(await store.openReservations()).toEqual([]);
      expect((await store.listCertificates({ limit: 10 }, T0)).items).toEqual([]);
      expect(await auditTypes(store)).toEqual(audited);
      expect(readFileSync(paths.auditFile, 'utf8')).toBe(file);
      await verified(paths);
    },
  };
}

test('a certificate that cannot be inserted is not recorded: its reservation stays, nothing is audited', async () => {
  const paths = temporaryPaths();
  const store = await opened(paths);
  inDatabase(
    paths,
    `CREATE TRIGGER fault BEFORE INSERT ON certificate WHEN NEW.subject = 'CN=bad' BEGIN SELECT RAISE(ABORT, 'injected'); END`,
  );
  const intents = ['CN=good-1', 'CN=bad', 'CN=good-2'].map((subject) => reservation({ subject }));
  for (const intent of intents) await store.reserve(intent, []);
  // In one group: the one that fails takes nothing but itself back.
  const results = await Promise.allSettled(
    intents.map((intent) => store.recordCertificate(certificateRow(intent), [event('certificate.issued')])),
  );
  expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(results[1]).toMatchObject({ reason: { status: 500, code: 'STORE_FAILED', message: 'the store failed' } });
  expect(await store.openReservations()).toEqual([intents[1]]);
  expect(await auditTypes(store)).toEqual(['certificate.issued', 'certificate.issued']);
  await verified(paths);
});

test.each([
  ['the audit record cannot be inserted', `BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'injected'); END`, 500],
  [
    'the end of the chain cannot be kept',
    `BEFORE UPDATE ON audit_head BEGIN SELECT RAISE(ABORT, 'injected'); END`,
    500,
  ],
  ['SQLite rolls everything back', `AFTER INSERT ON reservation BEGIN SELECT RAISE(ROLLBACK, 'injected'); END`, 500],
  ['the COMMIT fails', `AFTER INSERT ON reservation BEGIN INSERT INTO fault VALUES ('no such token'); END`, 500],
])('nothing of a call happens, in the store or in the audit file, when %s', async (_name, trigger, status) => {
  const paths = temporaryPaths();
  const { store, otp_id, untouched } = await withToken(paths);
  inDatabase(
    paths,
    `CREATE TABLE fault (id TEXT REFERENCES otp (id) DEFERRABLE INITIALLY DEFERRED); CREATE TRIGGER inject ${trigger}`,
  );
  const calls = Array.from({ length: 3 }, () => store.reserve(reservation({ otp_id }), [event('otp.used')]));
  for (const result of await Promise.allSettled(calls))
    expect(result).toMatchObject({ status: 'rejected', reason: { status, code: 'STORE_FAILED' } });
  await untouched();
  inDatabase(paths, 'DROP TRIGGER inject');
  expect(await store.reserve(reservation({ otp_id }), [event('otp.used')])).toBe('reserved');
  await verified(paths);
});

test('a failure before anything was written takes nothing out of the audit file', async () => {
  const paths = temporaryPaths();
  const { store, untouched } = await withToken(paths);
  inDatabase(paths, 'CREATE TABLE kept AS SELECT * FROM audit_head; DELETE FROM audit_head');
  await expect(store.audit([event('admin.access')])).rejects.toMatchObject({ status: 503, code: 'AUDIT_TAMPERED' });
  inDatabase(paths, 'INSERT INTO audit_head SELECT * FROM kept');
  await untouched();
});

test('while another program holds the write lock, calls fail with 503 and nothing happens', async () => {
  const paths = temporaryPaths();
  const { store, otp_id, untouched } = await withToken(paths);
  const other = new Database(paths.path);
  other.exec('BEGIN IMMEDIATE');
  await expect(store.reserve(reservation({ otp_id }), [event('otp.used')])).rejects.toMatchObject({
    status: 503,
    code: 'STORE_UNAVAILABLE',
  });
  // Reads go on.
  expect(await store.getOtp(otp_id)).toBeDefined();
  other.exec('ROLLBACK');
  other.close();
  await untouched();
  expect(await store.reserve(reservation({ otp_id }), [event('otp.used')])).toBe('reserved');
});

test('§6: when the audit file cannot be written, nothing is issued; when it can again, everything is', async () => {
  const paths = temporaryPaths();
  const { store, otp_id } = await withToken(paths);
  rmSync(paths.auditFile);
  mkdirSync(paths.auditFile);
  for (let n = 0; n < 2; n++)
    await expect(store.reserve(reservation({ otp_id }), [event('otp.used')])).rejects.toMatchObject({
      status: 503,
      code: 'AUDIT_UNAVAILABLE',
      message: 'the audit log cannot be written',
    });
  await expect(store.checkWritable()).rejects.toMatchObject({ status: 503, code: 'AUDIT_UNAVAILABLE' });
  expect(await store.getOtp(otp_id)).toMatchObject({ uses: 0 });
  expect(await auditTypes(store)).toEqual(['otp.created']);
  rmSync(paths.auditFile, { recursive: true });
  await store.checkWritable();
  expect(await store.reserve(reservation({ otp_id }), [event('otp.used')])).toBe('reserved');
  await verified(paths);
});

test('a full disk under the audit file: 503, and nothing in the store, until there is room again', async () => {
  const paths = temporaryPaths();
  symlinkSync('/dev/full', paths.auditFile);
  const store = await opened(paths);
  const row = otpRow();
  await expect(store.insertOtp(row, [event('otp.created')])).rejects.toMatchObject({
    status: 503,
    code: 'AUDIT_UNAVAILABLE',
  });
  expect(await store.getOtp(row.id)).toBeUndefined();
  await expect(store.checkWritable()).rejects.toMatchObject({ status: 503, code: 'AUDIT_UNAVAILABLE' });
  rmSync(paths.auditFile);
  await store.checkWritable();
  await store.checkWritable();
  expect((await store.listAudit({ limit: 10 })).items).toMatchObject([
    { type: 'audit.recovered', detail: 'the audit file can be written again' },
  ]);
  await verified(paths);
});

test('files that may not grow (as on a full disk): what was acknowledged is there, the rest failed whole', async () => {
  const paths = temporaryPaths();
  await (await opened(paths)).close();
  // The limit meets the write-ahead log and the audit file in the middle of a write, at the COMMIT or before.
  for (const room of [20, 70, 71, 200]) {
    const kibibytes = Math.ceil(statSync(paths.path).size / 1024) + room;
    const command = `trap '' XFSZ; ulimit -f ${kibibytes}; exec "$0" "$@"`;
    const args = ['-c', command, process.execPath, WRITER, paths.path, paths.auditFile, 'limited', '400'];
    const child = spawnSync('bash', args, { encoding: 'utf8', timeout: 60_000 });
    const lines = child.stdout.split('\n');
    expect(lines.some((line) => line.startsWith('failed '))).toBe(true);
    const store = await opened(paths);
    for (const line of lines) {
      const [kind, id = ''] = line.split(' ');
      if (kind === 'otp' || kind === 'reserved') expect(await store.getOtp(id)).toBeDefined();
      if (kind === 'recorded') expect(await store.getCertificates(id)).toHaveLength(1);
      if (kind === 'failed') expect(['AUDIT_UNAVAILABLE', 'STORE_UNAVAILABLE', 'STORE_FAILED']).toContain(id);
    }
    await store.insertOtp(otpRow(), [event('otp.created')]);
    await store.close();
    await verified(paths);
  }
});

test.each<[string, string, (paths: Paths) => Paths]>([
  ['the database is a folder', 'STORE_UNAVAILABLE', (paths) => ({ ...paths, path: paths.folder })],
  [
    'the database cannot be created',
    'STORE_UNAVAILABLE',
    (paths) => ({ ...paths, path: '/proc/no-such-folder/est.db' }),
  ],
  ['the audit file is a folder', 'AUDIT_UNAVAILABLE', (paths) => ({ ...paths, auditFile: paths.folder })],
  [
    'the audit file cannot be created',
    'AUDIT_UNAVAILABLE',
    (paths) => ({ ...paths, auditFile: '/proc/no-such-folder/audit.log' }),
  ],
])('start-up fails with a reason when %s', async (_name, code, change) => {
  const paths = change(temporaryPaths());
  await expect(openStore(paths)).rejects.toMatchObject({ status: 503, code, detail: expect.any(String) as unknown });
});
