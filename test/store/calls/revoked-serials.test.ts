import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { RevokedSerials } from '../../../src/store/calls/revoked-serials.ts';
import { watchRevocations } from '../../../src/store/sqlite/revocation-watch.ts';
import type { Store } from '../../../src/store/store.ts';
import { issue, T0, temporaryPaths, type Paths } from '../support.ts';

async function openedStore(paths: Paths): Promise<Store> {
  const store = await openStore(paths);
  onTestFinished(() => store.close());
  return store;
}

const revoke = (store: Store, serial: string): Promise<unknown> =>
  store.revokeCertificate({ ca: 'devices', serial, revoked_at: T0, reason: 'superseded', invalidity_date: null }, []);

describe('a process knows which serial numbers are revoked', () => {
  test('at once, and from an earlier run', async () => {
    const paths = temporaryPaths();
    const first = await openStore(paths);
    for (const serial of ['01', '02', '03']) await issue(first, { ca: 'devices', serial });
    expect(await first.findRevoked('01')).toEqual([]);
    await Promise.all([revoke(first, '01').then(async () => expect(await first.findRevoked('01')).toHaveLength(1))]);
    await first.close();
    const second = await openedStore(paths);
    expect(await second.findRevoked('01')).toHaveLength(1);
    await revoke(second, '02');
    expect(await second.findRevoked('02')).toHaveLength(1);
    expect(await second.findRevoked('03')).toEqual([]);
  });

  test('without a query for the others', async () => {
    const paths = temporaryPaths();
    const store = await openedStore(paths);
    await issue(store, { ca: 'devices', serial: '01' });
    // A change that the store does not see shows that it sends no query.
    const db = new Database(paths.path);
    db.exec("UPDATE certificate SET revoked_at = 1, reason = 'superseded'");
    db.close();
    expect(await store.findRevoked('01')).toEqual([]);
  });

  test('the writing thread notes a revocation by any statement', () => {
    const db = new Database(':memory:');
    db.exec('CREATE TABLE certificate (serial TEXT, revoked_at INTEGER, reason TEXT)');
    db.exec("INSERT INTO certificate VALUES ('01', 5, 'superseded'), ('02', NULL, NULL), ('03', NULL, NULL)");
    const watch = watchRevocations(db);
    expect(watch.known()).toEqual(['01']);
    db.exec("UPDATE certificate SET reason = 'keyCompromise'");
    expect(watch.take()).toEqual([]);
    db.exec('UPDATE certificate SET revoked_at = 6');
    expect(watch.take()).toEqual(['01', '02', '03']);
    db.exec("INSERT INTO certificate VALUES ('04', 7, 'superseded'), ('05', NULL, NULL)");
    expect(watch.take()).toEqual(['04']);
    expect(watch.take()).toEqual([]);
    db.exec('DELETE FROM certificate');
    expect(watch.known()).toEqual([]);
  });

  test('before the writing thread has reported, after it ended, and above the capacity, any serial may be revoked', () => {
    const serials = new RevokedSerials(2);
    expect(serials.mayHold('01')).toBe(true);
    serials.begin(['02']);
    expect(serials.mayHold('01')).toBe(false);
    expect(serials.mayHold('02')).toBe(true);
    serials.forget();
    expect(serials.mayHold('01')).toBe(true);
    serials.begin(['02', '03']);
    expect(serials.mayHold('01')).toBe(false);
    serials.add(['04']);
    expect(serials.mayHold('01')).toBe(true);
  });
});
