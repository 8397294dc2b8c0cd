/** The files of a store that is open must stay where they are. */
import { linkSync, renameSync, rmSync, symlinkSync, writeFileSync, copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { lockAuditFile, lockStore } from '../../../src/store/sqlite/service-lock.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
const stores: Store[] = [];
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  folder.remove();
});
let count = 0;

async function opened(): Promise<{ path: string; store: Store }> {
  const path = folder.file(`${++count}/est.db`);
  const store = await openStore({ path, auditFile: folder.file(`${count}/audit.log`) });
  stores.push(store);
  return { path, store };
}

const refusal = (path: string, what: string): unknown => {
  const detail: unknown = expect.stringContaining(`${path} ${what}`);
  return expect.objectContaining({ code: 'STORE_UNAVAILABLE', status: 503, detail });
};

describe('a file that is removed, replaced or moved under an open store', () => {
  const away = (path: string): void => renameSync(path, `${path}.away`);
  const replace = (path: string, write: () => void): void => {
    away(path);
    write();
  };
  test.each([
    ['the database is removed', '', 'was removed or moved', (path: string) => rmSync(path)],
    ['the database is moved', '', 'was removed or moved', away],
    [
      'the database is replaced',
      '',
      'was replaced',
      (path: string) => replace(path, () => copyFileSync(`${path}.away`, path)),
    ],
    ['the write-ahead log is removed', '-wal', 'was ', (path: string) => rmSync(path)],
    [
      'the write-ahead log is replaced',
      '-wal',
      'was replaced',
      (path: string) => replace(path, () => writeFileSync(path, '')),
    ],
  ])('%s: reads and writes are 503 and name it', async (_, suffix, what, change) => {
    const { path, store } = await opened();
    await store.checkWritable();
    change(path + suffix);
    const reason = refusal(path + suffix, what);
    await expect(store.checkWritable()).rejects.toThrow(reason);
    await expect(store.audit([{ type: 'service.start', outcome: 'success' }])).rejects.toThrow(reason);
    await expect(store.listLockouts({ limit: 1 }, 0)).rejects.toThrow(reason);
  });

  test('a file that is put back ends the fault', async () => {
    const { path, store } = await opened();
    away(path);
    await expect(store.checkWritable()).rejects.toThrow();
    renameSync(`${path}.away`, path);
    await store.checkWritable();
  });
});

test('a store behind a symbolic link has its write-ahead log next to the real file', async () => {
  const { path, store } = await opened();
  await store.close();
  const link = folder.file('link.db');
  symlinkSync(path, link);
  const again = await openStore({ path: link, auditFile: join(dirname(path), 'audit.log') });
  stores.push(again);
  await again.checkWritable();
  rmSync(link);
  await expect(again.checkWritable()).rejects.toThrow(refusal(link, 'was removed or moved'));
});

test('a database with two hard links is refused', async () => {
  const { path, store } = await opened();
  await store.close();
  linkSync(path, `${path}.second`);
  const refused = { code: 'STORE_HARD_LINKS', detail: `${path} has 2 hard links; remove the others` };
  expect(() => lockStore(path)).toThrow(expect.objectContaining(refused));
});

test('an audit file belongs to one service, under any of its paths', () => {
  const path = folder.file('audit.log');
  writeFileSync(path, '');
  symlinkSync(path, folder.file('audit-link.log'));
  const held = lockAuditFile(path);
  expect(() => lockAuditFile(folder.file('audit-link.log'))).toThrow(expect.objectContaining({ code: 'AUDIT_IN_USE' }));
  held.release();
  lockAuditFile(folder.file('audit-link.log')).release();
});
