/** What the console's overview shows. */
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import type { AdminRole } from '../../../src/config/vocabulary.ts';
import { event, requestRow } from '../../store/rows.ts';
import { issue } from '../../store/contract/support.ts';
import { adminFixture, ailingCa, DAY, failure, NOW, TOKEN } from './support.ts';
import { ask } from './typed.ts';

const HOUR = 3_600_000;
const at = (ms: number): string => new Date(ms).toISOString();
const as = (roles: readonly AdminRole[]) => ({
  bearer_token: {
    enabled: true,
    tokens: [{ token_hash: `sha256:${createHash('sha256').update(TOKEN).digest('hex')}`, description: 'x', roles }],
  },
});

describe('GET /admin/overview', () => {
  test('certificates by the days that they have left, what waits, and the health of all that the service needs', async () => {
    const cas = [
      ailingCa('devices', () => Promise.resolve({ health: 'ok' }), [], true),
      ailingCa('lab', () => Promise.resolve({ health: 'down', detail: 'token gone' })),
    ];
    const lastReload = { at: NOW - HOUR, ok: false };
    const api = await adminFixture({ cas, lastReload });
    for (const days of [0.5, 3, 3, 20, 1000, -1]) await issue(api.store, { not_after: NOW + days * DAY });
    await api.store.queueRequest(requestRow({ ca: 'devices' }), null, []);
    await api.store.recordFailure(
      ['address:192.0.2.1'],
      { max_failures: 0, failure_window: 300, lockout_duration: 900 },
      NOW,
      [],
    );
    const overview = await ask(api, 'get', '/admin/overview', 200);
    expect(overview).toEqual({
      time: at(NOW),
      version: '0.0.0-test',
      certificates: {
        valid: 5,
        ending: [
          [1, 1],
          [7, 3],
          [14, 3],
          [30, 4],
          [60, 4],
          [90, 4],
          [180, 4],
          [365, 4],
        ].map(([days, count]) => ({ days, count })),
      },
      requests: { pending: [{ ca: 'devices', count: 1 }] },
      rejections: { since: at(NOW - DAY + HOUR), total: 0, codes: [] },
      lockouts: 1,
      health: {
        store: { health: 'ok' },
        cas: [
          { label: 'devices', health: 'ok', not_after: null, days_left: null },
          { label: 'lab', health: 'down', detail: 'token gone', not_after: null, days_left: null },
        ],
        dependencies: [],
        faults: [],
        nodes: [{ name: 'node-1', host: hostname(), alive: true, lease_age: null, on_duty: true }],
        reload: { at: at(NOW - HOUR), ok: false },
        certificates: [],
      },
    });
  });

  test('each number of expiring certificates is that of the list of valid certificates that expire before then', async () => {
    const api = await adminFixture();
    for (const days of [0, 0.5, 1, 3, 7, 20, 30, 1000, -1]) await issue(api.store, { not_after: NOW + days * DAY });
    const { certificates } = await ask(api, 'get', '/admin/overview', 200);
    expect(certificates?.ending.map(({ days }) => days)).toEqual([1, 7, 14, 30, 60, 90, 180, 365]);
    for (const { days, count } of certificates?.ending ?? []) {
      const query = { status: 'valid', expires_before: at(NOW + days * DAY) } as const;
      const { items } = await ask(api, 'get', '/admin/certificates', 200, { query });
      expect([days, items.length]).toEqual([days, count]);
    }
    const { items } = await ask(api, 'get', '/admin/certificates', 200, { query: { status: 'valid' } });
    expect(items).toHaveLength(certificates?.valid ?? -1);
  });

  test('the nodes that share the store, by how long ago they last said that they live; none while it does not answer', async () => {
    const nodes = [
      { name: 'est-1', host: 'one', age: 1234, alive: true, on_duty: true },
      { name: 'est-2', host: 'two', age: 21_000, alive: false, on_duty: false },
    ];
    const listNodes = [() => Promise.resolve(nodes), () => Promise.reject(new Error('away'))];
    const shown = await Promise.all(
      listNodes.map(async (list) => {
        const api = await adminFixture({ wrapStore: (store) => ({ ...store, listNodes: list }) });
        return (await ask(api, 'get', '/admin/overview', 200)).health?.nodes;
      }),
    );
    expect(shown).toEqual([
      [
        { name: 'est-1', host: 'one', alive: true, lease_age: 1.2, on_duty: true },
        { name: 'est-2', host: 'two', alive: false, lease_age: 21, on_duty: false },
      ],
      [],
    ]);
  });

  test.each<[AdminRole, string[]]>([
    ['admin', ['certificates', 'health', 'lockouts', 'rejections', 'requests']],
    ['ra', ['certificates', 'rejections', 'requests']],
    ['auditor', ['certificates', 'rejections', 'requests']],
    ['operator', ['health', 'lockouts', 'rejections']],
  ])('%s sees %j', async (role, parts) => {
    const api = await adminFixture({ auth: as([role]) });
    const { time, version, ...shown } = await ask(api, 'get', '/admin/overview', 200);
    expect([time, version, Object.keys(shown).sort()]).toEqual([at(NOW), '0.0.0-test', parts]);
  });

  test('the certificates of a moment are counted once in ten seconds however many ask; a failure is not kept', async () => {
    let counted = 0;
    const api = await adminFixture({
      wrapStore: (store) => ({
        ...store,
        countCertificatesByEnd: (...args) =>
          ++counted === 1 ? Promise.reject(new Error('busy')) : store.countCertificatesByEnd(...args),
      }),
    });
    expect((await api.call('GET', '/admin/overview')).statusCode).toBe(500);
    await Promise.all([1, 2, 3].map(() => ask(api, 'get', '/admin/overview', 200)));
    expect(counted).toBe(2);
    api.advance(10_000);
    await ask(api, 'get', '/admin/overview', 200);
    expect(counted).toBe(3);
  });
});

describe('GET /admin/statistics', () => {
  test('the last 24 hours, each with a number for everything, of all CAs or of one', async () => {
    const api = await adminFixture();
    await api.store.audit([
      event('certificate.issued', { ca: 'devices', detail: 'simpleenroll' }),
      event('certificate.issued', { ca: 'devices', operation: 'simplereenroll' }),
      event('certificate.denied', { ca: 'lab', outcome: 'failure' }),
    ]);
    const nothing = {
      issued: 0,
      renewed: 0,
      refused: 0,
      failed: 0,
      queued: 0,
      revoked: 0,
      unauthenticated: 0,
      rejected: 0,
    };
    const all = await ask(api, 'get', '/admin/statistics', 200);
    expect([all.interval, all.since, all.until]).toEqual(['hour', at(NOW - 23 * HOUR), at(NOW + HOUR)]);
    expect(all.items).toHaveLength(24);
    expect(all.items[0]).toEqual({ time: at(NOW - 23 * HOUR), ...nothing });
    expect(all.items[23]).toEqual({ time: at(NOW), ...nothing, issued: 1, renewed: 1, refused: 1 });
    const lab = await ask(api, 'get', '/admin/statistics', 200, { query: { ca: 'lab', since: at(NOW) } });
    expect(lab.items).toEqual([{ time: at(NOW), ...nothing, refused: 1 }]);
  });

  test('by the day, 30 of them unless told', async () => {
    const api = await adminFixture();
    await api.store.audit([event('certificate.revoked', { ca: 'devices' })]);
    const { items, until } = await ask(api, 'get', '/admin/statistics', 200, { query: { interval: 'day' } });
    expect([items.length, until]).toEqual([30, '2026-11-22T00:00:00.000Z']);
    expect(items.at(-1)).toMatchObject({ time: '2026-11-21T00:00:00.000Z', revoked: 1 });
  });

  test.each([
    ['since=2026-11-22T00:00:00Z', 'since must not be later than until'],
    ['since=2026-01-01T00:00:00Z', 'since and until must not be more than 1000 intervals apart'],
    ['interval=day&since=2025-01-01T00:00:00Z', 'since and until must not be more than 400 intervals apart'],
    ['since=yesterday', 'since must be an ISO 8601 timestamp'],
    ['interval=minute', 'interval must be one of hour, day'],
  ])('%s: 400', async (query, message) => {
    const answer = failure(await (await adminFixture()).call('GET', `/admin/statistics?${query}`));
    expect([answer.statusCode, answer.message]).toEqual([400, expect.stringContaining(message)]);
  });
});
