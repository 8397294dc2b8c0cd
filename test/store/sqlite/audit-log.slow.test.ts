import Database from 'better-sqlite3';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { expect, test } from 'vitest';
import { chain, parseLine, type ParsedRecord } from '../../../src/audit/record.ts';
import { verifyAudit } from '../../../src/store/sqlite/read-audit.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { auditTypes, event, opened, type Paths, reservation, temporaryPaths } from '../support.ts';

const EVENTS = [event('service.start'), event('admin.access'), event('service.stop')];

/** A closed store with three records. */
async function closedStore(): Promise<Paths> {
  const paths = temporaryPaths();
  const store = await openStore(paths);
  await store.audit(EVENTS);
  await store.close();
  return paths;
}

function lines(paths: Paths): string[] {
  return readFileSync(paths.auditFile, 'utf8').split('\n').slice(0, -1);
}

function lastRecord(paths: Paths): ParsedRecord {
  const record = parseLine(lines(paths).at(-1) ?? '');
  if (record === undefined) throw new Error('the audit file does not end with a record');
  return record;
}

/** What a process leaves that dies between the file and the COMMIT. */
function appendUncommitted(paths: Paths, count: number): void {
  const { seq: stored } = lastRecord(paths);
  for (let n = 0; n < count; n++) {
    const before = lastRecord(paths);
    const { line } = chain(
      before,
      event('otp.used'),
      Date.now(),
      undefined,
      before.seq === stored ? stored : undefined,
    );
    appendFileSync(paths.auditFile, `${line}\n`);
  }
}

async function details(store: Store, type: 'audit.recovered' | 'audit.rotated'): Promise<(string | undefined)[]> {
  return (await store.listAudit({ limit: 100, type })).items.map((record) => record.detail);
}

async function verified(paths: Paths, records: number): Promise<void> {
  const verdict = await verifyAudit({ storePath: paths.path, auditFile: paths.auditFile });
  expect(verdict).toEqual({ ok: true, records, ahead: 0 });
}

test('records are in the file and in the store, the same ones in the same order', async () => {
  const paths = temporaryPaths();
  const store = await opened(paths, () => Date.UTC(2026, 0, 2));
  await store.audit(EVENTS);
  const records = (await store.listAudit({ limit: 10 })).items;
  expect(lines(paths).map((line): unknown => JSON.parse(line))).toEqual(records);
  expect(records).toMatchObject([
    { seq: 1, time: '2026-01-02T00:00:00.000Z', type: 'service.start', prev_hash: '0'.repeat(64) },
    { seq: 2, type: 'admin.access', prev_hash: records[0]?.hash },
    { seq: 3, type: 'service.stop', prev_hash: records[1]?.hash },
  ]);
});

test('start-up adopts records whose change did not commit, and says so', async () => {
  const paths = await closedStore();
  appendUncommitted(paths, 2);
  const store = await opened(paths);
  expect(await auditTypes(store)).toEqual([
    'service.start',
    'admin.access',
    'service.stop',
    'otp.used',
    'otp.used',
    'audit.recovered',
  ]);
  expect(await details(store, 'audit.recovered')).toEqual([
    '2 records (4 to 5) were written before a change that did not commit',
  ]);
  await verified(paths, 6);
});

test('a running process adopts what another one left, before it writes its own', async () => {
  const paths = temporaryPaths();
  const store = await opened(paths);
  await store.audit(EVENTS);
  appendUncommitted(paths, 1);
  await store.audit([event('admin.access')]);
  expect((await auditTypes(store)).slice(3)).toEqual(['otp.used', 'audit.recovered', 'admin.access']);
  await verified(paths, 6);
});

test.each([1, 40, 200])(
  'a last line of which only %i bytes were written is removed, and that is recorded',
  async (bytes) => {
    const paths = await closedStore();
    appendUncommitted(paths, 1);
    appendFileSync(paths.auditFile, chain(lastRecord(paths), event('otp.used'), Date.now()).line.slice(0, bytes));
    const store = await opened(paths);
    expect(await details(store, 'audit.recovered')).toEqual([
      `1 record (4) was written before a change that did not commit; an unfinished record of ${bytes} bytes was removed from the audit file`,
    ]);
    await verified(paths, 5);
  },
);

test('a new database next to an old audit file adopts its records and continues its chain', async () => {
  const paths = await closedStore();
  rmSync(paths.path);
  const store = await opened(paths);
  expect(await details(store, 'audit.recovered')).toEqual([
    '3 records (1 to 3) were written before a change that did not commit',
  ]);
  await verified(paths, 4);
});

test('a first line that was not finished is removed from a new store and from a new file', async () => {
  const fresh = temporaryPaths();
  writeFileSync(fresh.auditFile, '{"seq":1,"ti');
  await (await opened(fresh)).close();
  await verified(fresh, 1);

  const rotated = await closedStore();
  renameSync(rotated.auditFile, `${rotated.auditFile}.1`);
  const store = await opened(rotated);
  await store.close();
  // As if the process had died in its first write to the new file: the file's beginning is committed before that.
  const db = new Database(rotated.path);
  db.exec(`DELETE FROM audit WHERE seq = 4;
    UPDATE audit_head SET seq = 3, file_size = 0, hash = (SELECT substr(line, -66, 64) FROM audit WHERE seq = 3)`);
  db.close();
  truncateSync(rotated.auditFile, 50);
  await (await opened(rotated)).close();
  await verified(rotated, 4);
});

test.each<[string, (paths: Paths) => void]>([
  ['a line behind the end that does not continue the chain', (paths) => appendFileSync(paths.auditFile, 'hello\n')],
  ['the last record appended again', (paths) => appendFileSync(paths.auditFile, `${lines(paths).at(-1) ?? ''}\n`)],
  [
    'a well-chained line and one that is not',
    (paths) => {
      appendUncommitted(paths, 1);
      appendFileSync(paths.auditFile, 'hello\n');
    },
  ],
  ['a file cut short', (paths) => truncateSync(paths.auditFile, 100)],
  [
    'a last record that was removed',
    (paths) => writeFileSync(paths.auditFile, `${lines(paths).slice(0, -1).join('\n')}\n`),
  ],
  [
    'a last record that was changed',
    (paths) => {
      const text = readFileSync(paths.auditFile, 'utf8');
      writeFileSync(
        paths.auditFile,
        text.replace(/.(?="}\n$)/, (digit) => (digit === '0' ? '1' : '0')),
      );
    },
  ],
  [
    'another file of the same length',
    (paths) => writeFileSync(paths.auditFile, Buffer.alloc(readFileSync(paths.auditFile).length, 0x20)),
  ],
  ['a longer file that is no audit log', (paths) => writeFileSync(paths.auditFile, 'x\n'.repeat(10_000))],
])('tampering is refused, at start-up and while running: %s', async (_name, tamper) => {
  const paths = await closedStore();
  const store = await opened(paths);
  tamper(paths);
  const size = readFileSync(paths.auditFile).length;
  await expect(store.reserve(reservation(), [event('request.received')])).rejects.toMatchObject({
    status: 503,
    code: 'AUDIT_TAMPERED',
  });
  await expect(store.checkWritable()).rejects.toMatchObject({ code: 'AUDIT_TAMPERED' });
  expect(await store.openReservations()).toEqual([]);
  expect(await auditTypes(store)).toHaveLength(3);
  expect(readFileSync(paths.auditFile)).toHaveLength(size);
  await store.close();
  await expect(openStore(paths)).rejects.toMatchObject({
    status: 503,
    code: 'AUDIT_TAMPERED',
    detail: expect.stringContaining(paths.auditFile) as unknown,
  });
  // The way out that the message names: move the file away.
  renameSync(paths.auditFile, `${paths.auditFile}.tampered`);
  const again = await opened(paths);
  expect(await again.reserve(reservation(), [event('request.received')])).toBe('reserved');
  await verified(paths, 5);
});

test('after a rotation the next record goes to a new file, which says where the former one ended', async () => {
  const paths = temporaryPaths();
  const store = await opened(paths);
  await store.audit(EVENTS);
  const former = readFileSync(paths.auditFile);
  renameSync(paths.auditFile, `${paths.auditFile}.1`);
  await store.reopenAuditFile();
  expect(existsSync(paths.auditFile)).toBe(true);
  await store.audit([event('config.reload')]);
  expect(readFileSync(`${paths.auditFile}.1`)).toEqual(former);
  expect(lines(paths).map((line) => parseLine(line)?.type)).toEqual(['audit.rotated', 'config.reload']);
  expect(await details(store, 'audit.rotated')).toEqual([
    'started a new audit file; the previous one ended with record 3',
  ]);
  await verified(paths, 5);
});

test.each<[string, (paths: Paths) => void]>([
  ['renamed', (paths) => renameSync(paths.auditFile, `${paths.auditFile}.1`)],
  [
    'renamed, and an empty one made (logrotate)',
    (paths) => {
      renameSync(paths.auditFile, `${paths.auditFile}.1`);
      writeFileSync(paths.auditFile, '');
    },
  ],
  ['removed', (paths) => rmSync(paths.auditFile)],
  ['emptied (copytruncate)', (paths) => truncateSync(paths.auditFile)],
])('nobody has to tell a running process that the file was %s', async (_name, rotate) => {
  const paths = temporaryPaths();
  const store = await opened(paths);
  await store.audit(EVENTS);
  rotate(paths);
  await store.audit([event('admin.access')]);
  rotate(paths);
  await store.audit([event('admin.access')]);
  expect((await auditTypes(store)).slice(3)).toEqual([
    'audit.rotated',
    'admin.access',
    'audit.rotated',
    'admin.access',
  ]);
  await verified(paths, 7);
});

test('a backup made as docs/guides/backup.md says can be restored: start-up takes over what the file has more', async () => {
  const paths = temporaryPaths();
  const store = await opened(paths);
  await store.audit(EVENTS);
  const restored = temporaryPaths();
  const db = new Database(paths.path, { readonly: true });
  await db.backup(restored.path);
  db.close();
  await store.audit(EVENTS);
  copyFileSync(paths.auditFile, restored.auditFile);
  const again = await opened(restored);
  expect(await details(again, 'audit.recovered')).toEqual([
    '3 records (4 to 6) were written before a change that did not commit',
  ]);
  await verified(restored, 7);
});

test('reopening without a rotation changes nothing', async () => {
  const paths = temporaryPaths();
  const store = await opened(paths);
  await store.audit(EVENTS);
  await store.reopenAuditFile();
  await store.reopenAuditFile();
  await verified(paths, 3);
});

test('the database and the audit file are for their owner only', async () => {
  const paths = await closedStore();
  for (const path of [paths.path, paths.auditFile]) expect(statSync(path).mode & 0o777).toBe(0o600);
});
