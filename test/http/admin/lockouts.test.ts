import { describe, expect, it } from 'vitest';
import { adminFixture, failure, NOW, type AdminFixture } from './support.ts';
import { expectWholeBody } from './typed.ts';

const policy = { max_failures: 2, failure_window: 300, lockout_duration: 900 };

async function lockOut({ store }: AdminFixture, key: string): Promise<void> {
  for (let failures = 0; failures <= policy.max_failures; failures++) await store.recordFailure([key], policy, NOW, []);
}

describe('/admin/lockouts', () => {
  it('lists who is locked out, and no longer than they are', async () => {
    const api = await adminFixture();
    await lockOut(api, 'address:192.0.2.7');
    await lockOut(api, 'username:device-1');
    await api.store.recordFailure(['address:192.0.2.8'], policy, NOW, []);
    const list = (await api.call('GET', '/admin/lockouts')).json();
    expect(list.items).toHaveLength(2);
    expect(list.items[0]).toEqual({
      key: 'address:192.0.2.7',
      scope: 'address',
      failures: 3,
      locked_until: new Date(NOW + 900_000).toISOString(),
    });
    expect(list.items[1]).toMatchObject({ key: 'username:device-1', scope: 'username' });
    api.advance(900_000);
    expectWholeBody(await api.call('GET', '/admin/lockouts'), { items: [], next_cursor: null });
  });

  it.each(['address:192.0.2.7', 'address:2001:db8:0:1::/64', 'username:Ω/100% "you"', 'username:a?b#c'])(
    'DELETE ends the lockout of %s: 204, and on record',
    async (key) => {
      const api = await adminFixture();
      await lockOut(api, key);
      const response = await api.call('DELETE', `/admin/lockouts/${encodeURIComponent(key)}`);
      expect([response.statusCode, response.body]).toEqual([204, '']);
      expect(await api.store.lockedUntil([key], NOW)).toBeUndefined();
      const { items } = await api.store.listAudit({ limit: 10, type: 'lockout.cleared' });
      expect(items).toMatchObject([{ outcome: 'success', subject: 'test admin', address: '127.0.0.1', detail: key }]);
      const access = (await api.store.listAudit({ limit: 10, type: 'admin.access' })).items;
      expect(access).toMatchObject([{ detail: `DELETE /admin/lockouts/:key: lockout of ${key} ended` }]);
      expect(failure(await api.call('DELETE', `/admin/lockouts/${encodeURIComponent(key)}`))).toMatchObject({
        statusCode: 404,
        code: 'LOCKOUT_NOT_FOUND',
      });
    },
  );
});
