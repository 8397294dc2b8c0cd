/** Live updates by server-sent events. */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AdminAuthSettings } from '../../../src/auth/admin-authenticator.ts';
import type { AdminRole } from '../../../src/config/vocabulary.ts';
import { eventStream } from '../../../src/http/admin/events.ts';
import { event } from '../../store/rows.ts';
import { adminFixture, bearer, failure, TOKEN, type AdminFixture } from './support.ts';
import { pause } from '../../support/until.ts';

const as = (roles: readonly AdminRole[]): Partial<AdminAuthSettings> => ({
  bearer_token: {
    enabled: true,
    tokens: [{ token_hash: `sha256:${createHash('sha256').update(TOKEN).digest('hex')}`, description: 'x', roles }],
  },
});

interface Listening {
  /** Resolves with all that has come once it holds the text. */
  readonly until: (text: string) => Promise<string>;
  readonly ended: Promise<string>;
}

/** Listens to the events of a fixture. */
async function listen({ app }: AdminFixture, headers: Record<string, string> = bearer): Promise<Listening> {
  const response = await app.inject({ method: 'GET', url: '/admin/events', headers, payloadAsStream: true });
  expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'text/event-stream']);
  return reading(response.stream());
}

function reading(stream: Readable): Listening {
  onTestFinished(() => void stream.destroy());
  let all = '';
  stream.setEncoding('utf8').on('data', (text: string) => void (all += text));
  return {
    until: (text) =>
      new Promise((resolve) => {
        const look = (): void =>
          all.includes(text) ? resolve(all) : void stream.once('data', () => setImmediate(look));
        look();
      }),
    ended: new Promise((resolve) => void stream.once('close', () => resolve(all))),
  };
}

const records = (text: string): Record<string, unknown>[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Record<string, unknown>);

describe('GET /admin/events', () => {
  test('what is committed comes, in order and once, with its number; what was before does not', async () => {
    const api = await adminFixture();
    await api.store.audit([event('service.start')]);
    const { until } = await listen(api);
    await api.store.audit([event('certificate.issued', { ca: 'devices', serial: '01', detail: 'a\nb' })]);
    await api.store.audit([event('lockout.started'), event('service.stop')]);
    const text = await until('service.stop');
    expect(records(text).map(({ seq, type }) => [seq, type])).toEqual([
      [2, 'certificate.issued'],
      [3, 'lockout.started'],
      [4, 'service.stop'],
    ]);
    // A busy machine can be slower than the beat.
    expect(text.replaceAll(': alive\nevent: alive\ndata\nid: 1\n\n', '')).toMatch(
      /^retry: 3000\nid: 1\n\nevent: audit\nid: 2\ndata: \{"seq":2,.*\}\n\n/,
    );
  });

  test.each<[AdminRole, string[], boolean]>([
    [
      'admin',
      ['auth.admin', 'auth.otp', 'lockout.started', 'admin.access', 'certificate.issued', 'service.stop'],
      true,
    ],
    [
      'auditor',
      ['auth.admin', 'auth.otp', 'lockout.started', 'admin.access', 'certificate.issued', 'service.stop'],
      true,
    ],
    ['ra', ['auth.otp', 'certificate.issued'], false],
    ['operator', ['lockout.started', 'service.stop'], false],
  ])('%s sees records of the types %j', async (role, types, isWhole) => {
    const api = await adminFixture({ auth: as([role]) });
    const { until } = await listen(api);
    const detail = 'whole';
    await api.store.audit([
      event('auth.admin', { detail }),
      event('auth.otp', { detail, outcome: 'failure' }),
      event('lockout.started', { detail }),
      event('admin.access', { detail }),
      event('certificate.issued', { detail, address: '192.0.2.1', serial: '01' }),
      event('service.stop', { detail }),
    ]);
    const told = records(await until(role === 'ra' ? 'certificate.issued' : 'service.stop'));
    expect(told.map(({ type }) => type)).toEqual(types);
    for (const one of told)
      expect(['detail', 'hash'].filter((name) => name in one)).toEqual(isWhole ? ['detail', 'hash'] : []);
  });

  test('who comes back goes on behind what it has seen, unless that is too long ago, or never was', async () => {
    const api = await adminFixture();
    await api.store.audit(Array.from({ length: 1200 }, () => event('crl.issued')));
    const seen = await listen(api, { ...bearer, 'last-event-id': '1190' });
    expect(records(await seen.until('"seq":1200'))).toHaveLength(10);
    for (const id of ['100', '5000', 'x', '-1']) {
      const { until } = await listen(api, { ...bearer, 'last-event-id': id });
      expect(await until('retry')).toBe('retry: 3000\nid: 1200\n\n');
    }
  });

  test('it shows that it lives, and ends with its session: signed out, or idle', async () => {
    const api = await adminFixture();
    const own = { host: 'x', 'sec-fetch-site': 'same-origin' };
    for (const end of ['out', 'idle']) {
      const signedIn = await api.raw('POST', '/admin/session', { ...own, ...bearer });
      const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
      const { until, ended } = await listen(api, { ...own, cookie });
      await until(': alive');
      if (end === 'out') await api.raw('DELETE', '/admin/session', { ...own, cookie });
      else api.advance(900_000);
      await ended;
    }
  });

  test('a reload that takes the token away ends it; one that takes the role away changes what comes', async () => {
    let settings = as(['ra', 'operator']);
    let asked = 0;
    const api = await adminFixture({
      auth: () => {
        asked += 1;
        return settings;
      },
    });
    const { until, ended } = await listen(api);
    settings = as(['operator']);
    const before = asked;
    await expect.poll(() => asked).toBeGreaterThan(before);
    await api.store.audit([event('certificate.issued'), event('service.stop')]);
    expect(records(await until('service.stop')).map(({ type }) => type)).toEqual(['service.stop']);
    settings = { bearer_token: { enabled: true, tokens: [] } };
    await ended;
  });

  test('it ends when the server stops, and where the store cannot be read', async () => {
    const api = await adminFixture();
    const { ended, until } = await listen(api);
    await until('retry');
    await api.app.close();
    await ended;
  });

  test('one process serves a hundred at most', async () => {
    const api = await adminFixture();
    for (let n = 0; n < 100; n++) await listen(api);
    const answer = await api.app.inject({ method: 'GET', url: '/admin/events', headers: bearer });
    expect([failure(answer).code, answer.headers['retry-after']]).toEqual(['TOO_MANY_STREAMS', '30']);
  });
});

describe('a stream of events', () => {
  test('reads no more than is taken', async () => {
    let read = 0;
    const line = JSON.stringify({
      ...event('crl.issued', { detail: 'x'.repeat(1000) }),
      seq: 1,
      time: 'now',
      prev_hash: '',
      hash: '',
    });
    const stream = eventStream({
      read: (after, limit) => {
        read += limit;
        return Promise.resolve(Array.from({ length: limit }, (_, n) => ({ seq: after + n + 1, time: 0, line })));
      },
      after: 0,
      show: (record) => record,
      mayGoOn: () => Promise.resolve(true),
      mayEnd: () => false,
    });
    onTestFinished(() => void stream.destroy());
    stream.once('readable', () => undefined);
    await pause(50);
    expect(read).toBeLessThanOrEqual(600);
  });

  test('looks at once whether it may go on after a record that may end it, and tells nothing of that and later ones', async () => {
    const lines = (['crl.issued', 'admin.access', 'crl.issued'] as const).map((type, n) => ({
      seq: n + 1,
      time: 0,
      line: JSON.stringify({ ...event(type), seq: n + 1, time: new Date(0).toISOString(), prev_hash: '', hash: '' }),
    }));
    const stream = eventStream({
      read: (after) => Promise.resolve(lines.slice(after, after + 1)),
      after: 0,
      show: (record) => record,
      mayGoOn: () => Promise.resolve(false),
      mayEnd: ({ type }) => type === 'admin.access',
      lookEvery: 1,
      beatEvery: 3_600_000,
    });
    let text = '';
    for await (const chunk of stream) text += String(chunk);
    expect(text.match(/^id: \d+$/gm)).toEqual(['id: 0', 'id: 1']);
  });

  test('ends where the store cannot be read', async () => {
    const stream = eventStream({
      read: () => Promise.reject(new Error('gone')),
      after: 0,
      show: (record) => record,
      mayGoOn: () => Promise.resolve(true),
      mayEnd: () => false,
    });
    const error = await new Promise((resolve) => void stream.once('error', resolve).resume());
    expect(error).toEqual(new Error('gone'));
    expect(stream.destroyed).toBe(true);
  });
});
