import Database from 'better-sqlite3';
import { appendFileSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { until } from '../support/until.ts';
import { event, opened, otpRow, type Paths, temporaryPaths } from '../store/support.ts';

/** What fails: writes to disk of files with this end of their names, ROLLBACK, or opening for reads. */
const failing = vi.hoisted(() => new Set<string>());

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const fails = (fd: number): boolean => {
    const name = fs.readlinkSync(`/proc/self/fd/${fd}`);
    return [...failing].some((end) => name.endsWith(end));
  };
  const error = (): Error => Object.assign(new Error('EIO: i/o error, fdatasync'), { syscall: 'fdatasync' });
  return {
    ...fs,
    fdatasync(fd: number, done: (error: Error | null) => void) {
      if (fails(fd)) setImmediate(done, error());
      else fs.fdatasync(fd, done);
    },
    fdatasyncSync(fd: number) {
      if (fails(fd)) throw error();
      fs.fdatasyncSync(fd);
    },
  };
});

vi.mock('../../src/store/sqlite/database.ts', async (original) => {
  const database = await original<typeof import('../../src/store/sqlite/database.ts')>();
  return {
    ...database,
    openReadOnly(path: string) {
      if (failing.has('openReadOnly')) throw new Error('no more files can be opened');
      return database.openReadOnly(path);
    },
  };
});

const LOST = { status: 503, code: 'STORE_UNAVAILABLE' };

/** @returns what ends the failure */
function failure(of: string): () => void {
  const end = (): void => void failing.delete(of);
  failing.add(of);
  onTestFinished(end);
  return end;
}

const insert = (store: Store): Promise<void> => store.insertOtp(otpRow(), [event('otp.created')]);

/** Writes until it succeeds. Every failure before is a 503 with this detail. */
async function insertedAfter(store: Store, detail: string): Promise<void> {
  await until('a write succeeds', async () => {
    try {
      await insert(store);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ ...LOST, detail: expect.stringContaining(detail) as unknown });
      return false;
    }
  });
}

/** Waits for a failed write with this detail. */
async function refused(store: Store, detail: string): Promise<void> {
  await until(`a write fails: ${detail}`, async () => {
    const error: unknown = await insert(store).catch((reason: unknown) => reason);
    expect(error).toMatchObject(LOST);
    return String(Reflect.get(Object(error) as object, 'detail')).includes(detail);
  });
}

/** The files of a store that this process has open. */
function openFiles({ folder }: Paths): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const name = readlinkSync(`/proc/self/fd/${fd}`);
      return name.startsWith(folder) ? [name] : [];
    } catch {
      return [];
    }
  });
}

describe('after a commit that was not forced to disk', () => {
  test('the store neither writes nor reads until a checkpoint has succeeded', async () => {
    const store = await opened(temporaryPaths());
    const before = otpRow();
    await store.insertOtp(before, [event('otp.created')]);
    const end = failure('-wal');
    await expect(insert(store)).rejects.toMatchObject(LOST);
    end();
    expect(await store.getOtp('x')).toBeUndefined();
    await insert(store);

    failure('-wal');
    await expect(insert(store)).rejects.toMatchObject(LOST);
    await refused(store, 'so did the checkpoint');
    await expect(store.getOtp(before.id)).rejects.toMatchObject(LOST);
    await expect(store.listOtps({ limit: 10 }, 0)).rejects.toMatchObject(LOST);
    await expect(store.checkWritable()).rejects.toMatchObject(LOST);
    failing.clear();
    await insertedAfter(store, 'disk');
    expect(await store.getOtp(before.id)).toMatchObject({ id: before.id });
  });

  test('a reader that keeps the write-ahead log delays the checkpoint and all writes', async () => {
    const paths = temporaryPaths();
    const store = await opened(paths);
    await insert(store);
    const reader = new Database(paths.path, { readonly: true });
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM otp').get();
    const end = failure('-wal');
    await expect(insert(store)).rejects.toMatchObject(LOST);
    end();
    await refused(store, 'the log is in use');
    reader.close();
    await insertedAfter(store, 'the log is in use');
  });
});

test('an audit file that is not forced to disk takes the transaction back, and the next one succeeds', async () => {
  const store = await opened(temporaryPaths());
  const row = otpRow();
  const end = failure('audit.log');
  await expect(store.insertOtp(row, [event('otp.created')])).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' });
  end();
  expect(await store.getOtp(row.id)).toBeUndefined();
  await store.insertOtp(row, [event('otp.created')]);
});

test('a ROLLBACK that fails does not stop the writes after it', async () => {
  const store = await opened(temporaryPaths());
  const memory = new Database(':memory:');
  const statements = Object.getPrototypeOf(memory.prepare('SELECT 1')) as Database.Statement;
  memory.close();
  const original: unknown = Reflect.get(statements, 'run');
  if (typeof original !== 'function') throw new Error('a statement has no run');
  const spy = vi.spyOn(statements, 'run').mockImplementation(function (this: Database.Statement, ...args) {
    if (this.source === 'ROLLBACK' && failing.has('ROLLBACK')) throw new Error('injected');
    return Reflect.apply(original, this, args) as Database.RunResult;
  });
  onTestFinished(() => spy.mockRestore());
  const row = otpRow();
  failure('ROLLBACK');
  failure('audit.log');
  for (let n = 0; n < 2; n++)
    await expect(store.insertOtp(row, [event('otp.created')])).rejects.toMatchObject({
      status: expect.any(Number) as unknown,
    });
  failing.clear();
  await store.insertOtp(row, [event('otp.created')]);
  expect(spy).toHaveBeenCalled();
});

test('a checkpoint that fails makes the store not writable', async () => {
  const paths = temporaryPaths();
  await (await openStore(paths)).close();
  const [database, away] = [`${paths.path}.real`, `${paths.path}.away`];
  const name = (file: string): void => {
    rmSync(paths.path, { force: true });
    symlinkSync(file, paths.path);
  };
  renameSync(paths.path, database);
  name(database);
  const store = await opened(paths);
  // The thread that makes the checkpoint cannot open the database, whose configured name is still right.
  renameSync(database, away);
  name(away);
  await until('a checkpoint fails', () =>
    store.checkWritable().then(
      () => false,
      () => true,
    ),
  );
  await expect(store.checkWritable()).rejects.toMatchObject({
    ...LOST,
    detail: expect.stringContaining('the checkpoint of the database failed') as unknown,
  });
  await insert(store);
});

describe('a store that cannot be opened leaves no file open', () => {
  test('when the audit file differs from it', async () => {
    const paths = temporaryPaths();
    const store = await openStore(paths);
    await insert(store);
    await store.close();
    appendFileSync(paths.auditFile, '{}\n');
    await expect(openStore(paths)).rejects.toMatchObject({ code: 'AUDIT_TAMPERED' });
    expect(openFiles(paths)).toEqual([]);
  });

  test('when it cannot be opened a second time, for reads', async () => {
    const paths = temporaryPaths();
    failure('openReadOnly');
    await expect(openStore(paths)).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(openFiles(paths)).toEqual([]);
  });
});
