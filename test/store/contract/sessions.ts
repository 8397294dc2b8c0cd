import { describe, expect, test } from 'vitest';
import { MAX_SESSIONS, type SessionRow } from '../../../src/store/session-store.ts';
import { event, T0 } from '../rows.ts';
import { auditTypes, type NewDatabase } from './support.ts';

const HOUR = 3_600_000;

const row = (id_hash: string, more: Partial<SessionRow> = {}): SessionRow => ({
  id_hash,
  administrator: 'token:ada',
  method: 'bearer',
  claims: null,
  certificate: null,
  created_at: T0,
  seen_at: T0,
  ends_at: T0 + 8 * HOUR,
  ...more,
});
const SIGNED_IN = [event('auth.admin')];

export function sessionStoreContract(newDatabase: NewDatabase): void {
  describe('SessionStore', () => {
    test('every store of the database knows a session, with all that it is, until it is ended', async () => {
      const database = newDatabase();
      const [store, other] = [await database.open(), await database.open()];
      const mine = row('aa', { method: 'mtls', certificate: 'ff'.repeat(32) });
      await store.createSession(mine, null, SIGNED_IN);
      expect(await other.getSession('aa')).toEqual(mine);
      expect(await other.getSession('bb')).toBeUndefined();
      expect(await other.deleteSession('aa', [event('admin.access')])).toBe(true);
      expect(await other.deleteSession('aa', [event('admin.access')])).toBe(false);
      expect(await store.getSession('aa')).toBeUndefined();
      expect(await auditTypes(store)).toEqual(['auth.admin', 'admin.access']);
    });

    test('a use is noted; of one that is gone it makes none', async () => {
      const store = await newDatabase().open();
      await store.createSession(row('aa'), null, []);
      await store.touchSession('aa', T0 + 60_000);
      await store.touchSession('bb', T0 + 60_000);
      expect(await store.getSession('aa')).toEqual(row('aa', { seen_at: T0 + 60_000 }));
      expect(await store.getSession('bb')).toBeUndefined();
    });

    test('a new one takes the place of the former, and what is over goes', async () => {
      const store = await newDatabase().open();
      await store.createSession(row('over', { ends_at: T0 + HOUR }), null, []);
      await store.createSession(row('former'), null, []);
      await store.createSession(row('other'), null, []);
      await store.createSession(row('new', { created_at: T0 + HOUR }), 'former', []);
      const left = await Promise.all(['over', 'former', 'other', 'new'].map((id) => store.getSession(id)));
      expect(left.map((session) => session?.id_hash)).toEqual([undefined, undefined, 'other', 'new']);
    });

    test(`one administrator has ${MAX_SESSIONS} at most: the oldest goes, and nobody else's`, async () => {
      const store = await newDatabase().open();
      await store.createSession(row('bob', { administrator: 'token:bob' }), null, []);
      for (let n = 0; n <= MAX_SESSIONS; n++)
        await store.createSession(row(`ada-${n}`, { created_at: T0 + Math.floor(n / 2) }), null, []);
      const known = async (id: string) => (await store.getSession(id)) !== undefined;
      expect([await known('bob'), await known('ada-0'), await known('ada-1')]).toEqual([true, false, true]);
    });
  });
}
