import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { monotonic } from '../../../src/store/calls/clock.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { LEASE, RevokedSerials } from '../../../src/store/calls/revoked-serials.ts';
import { watchRevocations } from '../../../src/store/sqlite/revocation-watch.ts';
import type { Store } from '../../../src/store/store.ts';
import { issue, T0, temporaryPaths, type Paths } from '../support.ts';

async function alone(paths: Paths): Promise<Store> {
  const store = await openStore({ ...paths, alone: true });
  onTestFinished(() => store.close());
  return store;
}

const revoke = (store: Store, serial: string): Promise<unknown> =>
  store.revokeCertificate({ ca: 'devices', serial, revoked_at: T0, reason: 'superseded', invalidity_date: null }, []);

describe('issue 14.2: a process that writes alone knows what is revoked', () => {
  test('at once, and of an earlier run', async () => {
    const paths = temporaryPaths();
    const first = await openStore({ ...paths, alone: true });
    for (const serial of ['01', '02', '03']) await issue(first, { ca: 'devices', serial });
    expect(await first.findRevoked('01')).toEqual([]);
    await Promise.all([revoke(first, '01').then(async () => expect(await first.findRevoked('01')).toHaveLength(1))]);
    await first.close();
    const second = await alone(paths);
    expect(await second.findRevoked('01')).toHaveLength(1);
    await revoke(second, '02');
    expect(await second.findRevoked('02')).toHaveLength(1);
    expect(await second.findRevoked('03')).toEqual([]);
  });

  test('without asking the database for others', async () => {
    const paths = temporaryPaths();
    const store = await alone(paths);
    await issue(store, { ca: 'devices', serial: '01' });
    // What another program does behind its back shows that it does not ask; the service's lock keeps other services away.
    const db = new Database(paths.path);
    db.exec("UPDATE certificate SET revoked_at = 1, reason = 'superseded'");
    db.close();
    expect(await store.findRevoked('01')).toEqual([]);
    const sharing = await openStore(paths);
    onTestFinished(() => sharing.close());
    expect(await sharing.findRevoked('01')).toHaveLength(1);
  });

  test('one of several processes learns what another has revoked', async () => {
    const paths = temporaryPaths();
    const [one, other] = await Promise.all([openStore(paths), openStore(paths)]);
    onTestFinished(() => Promise.all([one.close(), other.close()]).then(() => undefined));
    await issue(one, { ca: 'devices', serial: '01' });
    expect(await one.findRevoked('01')).toEqual([]);
    await revoke(other, '01');
    expect(await one.findRevoked('01')).toHaveLength(1);
  });

  test('whichever statement revokes, the thread that writes notes it', () => {
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

  test('until it has told, and after it died, nothing is ruled out; nor when there are too many', () => {
    const serials = new RevokedSerials(2);
    serials.heard(Infinity);
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

  test('nor when the writer was not heard for a while: this process may have been stopped', () => {
    const serials = new RevokedSerials();
    serials.begin(['02']);
    serials.heard(monotonic());
    expect(serials.mayHold('01')).toBe(false);
    serials.heard(monotonic() - LEASE - 1);
    expect(serials.mayHold('01')).toBe(true);
  });
});
