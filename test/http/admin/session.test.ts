/** An administrator signs in with a browser, and a session stands for the credentials. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AdminAuthSettings } from '../../../src/auth/admin-authenticator.ts';
import { ADMIN_ROLES, type AdminRole } from '../../../src/config/vocabulary.ts';
import { adminFixture, bearer, failure, TOKEN, type AdminFixture } from './support.ts';
import { expectWholeBody } from './typed.ts';

const HOST = 'admin.example:9444';
const NAME = '__Host-estuary-session';
/** Headers that a browser adds to requests of the console's own page. */
const OWN = { host: HOST, 'sec-fetch-site': 'same-origin', origin: `https://${HOST}` };
const MINUTE = 60_000;

const tokens = (roles: readonly AdminRole[] = ['admin'], not_after?: string): Partial<AdminAuthSettings> => ({
  bearer_token: {
    enabled: true,
    tokens: [
      {
        token_hash: `sha256:${createHash('sha256').update(TOKEN).digest('hex')}`,
        description: 'test admin',
        roles,
        ...(not_after === undefined ? {} : { not_after }),
      },
    ],
  },
});

/** Signs in; the cookie, as a browser sends it. */
async function signIn(api: AdminFixture, headers: Record<string, string> = {}): Promise<string> {
  const answer = await api.raw('POST', '/admin/session', { ...OWN, ...bearer, ...headers });
  expect(answer.statusCode).toBe(201);
  return String(answer.headers['set-cookie']).split(';')[0] ?? '';
}

const get = (api: AdminFixture, cookie: string, url = '/admin/otp') => api.raw('GET', url, { host: HOST, cookie });

const accessRecords = async ({ store }: AdminFixture) =>
  (await store.listAudit({ limit: 1000 })).items.map(({ type, outcome, subject, detail }) => [
    type,
    outcome,
    subject,
    detail,
  ]);

describe('signing in', () => {
  test('the cookie is for this host, for TLS, and for no script and no other site; its value is not in the store, the log or the answer', async () => {
    const api = await adminFixture();
    const answer = await api.raw('POST', '/admin/session', { ...OWN, ...bearer });
    const cookie = String(answer.headers['set-cookie']);
    expect(cookie).toMatch(/^__Host-estuary-session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/);
    const id = /=([\w-]{43});/.exec(cookie)?.[1] ?? 'none';
    expectWholeBody(answer, {
      subject: 'test admin',
      method: 'bearer',
      roles: ['admin'],
      grants: [{ roles: ['admin'], labels: null }],
      not_after: null,
      session: { created_at: '2026-11-21T12:00:00.000Z', ends_at: '2026-11-21T20:00:00.000Z', idle_timeout: 900 },
    });
    expect(api.logged()).not.toContain(id);
    expect(await api.store.getSession(id)).toBeUndefined();
    expect(await api.store.getSession(createHash('sha256').update(id).digest('hex'))).toMatchObject({
      method: 'bearer',
    });
    expectWholeBody(await get(api, `${NAME}=${id}`, '/admin/session'), answer.json());
    expect(await accessRecords(api)).toEqual([
      ['auth.admin', 'success', 'test admin', 'signed in: bearer'],
      ['admin.access', 'success', 'test admin', 'POST /admin/session: signed in'],
    ]);
  });

  test('without credentials, with wrong ones, and with a cookie alone: 401', async () => {
    const api = await adminFixture();
    const cookie = await signIn(api);
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { cookie }])
      expect((await api.raw('POST', '/admin/session', { ...OWN, ...headers })).statusCode).toBe(401);
    expect(
      (await accessRecords(api)).filter(([type, outcome]) => type === 'auth.admin' && outcome === 'failure'),
    ).toHaveLength(1);
  });

  test('fixation: each sign-in gets a new ID, whatever it sends, and ends the former session', async () => {
    const api = await adminFixture();
    const planted = `${NAME}=${'A'.repeat(43)}`;
    const first = await signIn(api, { cookie: planted });
    expect(first).not.toBe(planted);
    expect((await get(api, planted)).statusCode).toBe(401);
    const second = await signIn(api, { cookie: first });
    expect(second).not.toBe(first);
    expect([(await get(api, first)).statusCode, (await get(api, second)).statusCode]).toEqual([401, 200]);
    const third = await signIn(api);
    expect([(await get(api, second)).statusCode, (await get(api, third)).statusCode]).toEqual([200, 200]);
  });
});

describe('a session', () => {
  test('calls what its roles may call, and is on record as its administrator', async () => {
    const api = await adminFixture({ auth: tokens(['auditor']) });
    const cookie = await signIn(api);
    expect((await get(api, cookie, '/admin/audit')).statusCode).toBe(200);
    expect(failure(await get(api, cookie)).code).toBe('ROLE_MISSING');
    expect((await accessRecords(api)).at(-1)).toEqual([
      'admin.access',
      'failure',
      'test admin',
      'GET /admin/otp: ROLE_MISSING',
    ]);
  });

  test('signing out ends it for good, and takes the cookie back', async () => {
    const api = await adminFixture();
    const cookie = await signIn(api);
    const answer = await api.raw('DELETE', '/admin/session', { ...OWN, cookie });
    expect([answer.statusCode, answer.headers['set-cookie']]).toEqual([
      204,
      `${NAME}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0`,
    ]);
    expect(failure(await get(api, cookie))).toMatchObject({ statusCode: 401, code: 'SESSION_ENDED' });
    expect((await accessRecords(api)).at(-1)).toEqual([
      'admin.access',
      'success',
      'test admin',
      'DELETE /admin/session: signed out',
    ]);
    expect(failure(await api.raw('DELETE', '/admin/session', { ...OWN, ...bearer })).code).toBe('SESSION_NOT_FOUND');
  });

  test('it ends when it was not used for idle_timeout, and lives on while it is', async () => {
    const api = await adminFixture();
    const cookie = await signIn(api);
    for (let n = 0; n < 4; n++) {
      api.advance(14 * MINUTE);
      expect((await get(api, cookie)).statusCode).toBe(200);
    }
    api.advance(15 * MINUTE);
    const answer = await get(api, cookie);
    expect(failure(answer).code).toBe('SESSION_ENDED');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    expect(answer.headers['set-cookie']).toContain('Max-Age=0');
  });

  test('it ends after lifetime however much it is used', async () => {
    const api = await adminFixture();
    const cookie = await signIn(api);
    for (let minutes = 10; minutes < 480; minutes += 10) {
      api.advance(10 * MINUTE);
      expect((await get(api, cookie)).statusCode).toBe(200);
    }
    api.advance(10 * MINUTE);
    expect(failure(await get(api, cookie)).code).toBe('SESSION_ENDED');
  });

  test('it ends with its token', async () => {
    const api = await adminFixture({ auth: tokens(['admin'], '2026-11-21T12:05:00Z') });
    const cookie = await signIn(api);
    api.advance(5 * MINUTE - 1);
    expect((await get(api, cookie)).statusCode).toBe(200);
    api.advance(1);
    expect((await get(api, cookie)).statusCode).toBe(401);
  });

  test.each<[string, Partial<AdminAuthSettings>]>([
    ['its token was removed', { bearer_token: { enabled: true, tokens: [] } }],
    ['its token has an end that has come', tokens(['admin'], '2026-11-21T11:00:00Z')],
    ['bearer tokens were switched off', { bearer_token: { ...tokens().bearer_token, enabled: false, tokens: [] } }],
    ['certificates are demanded', { ...tokens(), mode: 'required' }],
  ])('a reload ends it where %s; the audit log says why', async (_, after) => {
    let settings = tokens();
    const api = await adminFixture({ auth: () => settings });
    const cookie = await signIn(api);
    settings = after;
    expect(failure(await get(api, cookie)).code).toBe('SESSION_ENDED');
    expect((await accessRecords(api)).at(-1)).toEqual([
      'auth.admin',
      'failure',
      undefined,
      expect.stringMatching(/^session: /),
    ]);
  });

  test('a reload that gives its token other roles gives them to the session', async () => {
    let settings = tokens(['admin']);
    const api = await adminFixture({ auth: () => settings });
    const cookie = await signIn(api);
    expect((await get(api, cookie)).statusCode).toBe(200);
    settings = tokens(['operator']);
    expect(failure(await get(api, cookie)).code).toBe('ROLE_MISSING');
    expect((await get(api, cookie, '/admin/cas')).statusCode).toBe(200);
  });

  test.each(['', 'x', 'A'.repeat(43), 'A'.repeat(4000), `${'A'.repeat(42)}!`])(
    'a foreign cookie (%#): 401',
    async (id) => {
      const api = await adminFixture();
      expect(failure(await get(api, `${NAME}=${id}`)).code).toBe('SESSION_ENDED');
      expect((await get(api, `other=1; ${NAME}x=${id}`)).statusCode).toBe(401);
    },
  );

  test('it has the roles of the token with which it began, although another token has the same name', async () => {
    const both = (...order: readonly number[]): Partial<AdminAuthSettings> => {
      const tokenOf = (token: string, roles: readonly AdminRole[]) => ({
        token_hash: `sha256:${createHash('sha256').update(token).digest('hex')}`,
        ...{ description: token, name: 'Ada', roles },
      });
      const all = [tokenOf(TOKEN, ['auditor']), tokenOf('another', ['admin'])];
      return { bearer_token: { enabled: true, tokens: order.flatMap((index) => all[index] ?? []) } };
    };
    let settings = both(1, 0);
    const api = await adminFixture({ auth: () => settings });
    const cookie = await signIn(api);
    expect((await get(api, cookie)).statusCode).toBe(403);
    settings = both(0, 1);
    expect((await get(api, cookie)).statusCode).toBe(403);
    settings = both(1);
    expect(failure(await get(api, cookie)).code).toBe('SESSION_ENDED');
  });

  test('an Authorization header goes before the cookie', async () => {
    const api = await adminFixture();
    const cookie = await signIn(api);
    expect((await api.raw('GET', '/admin/otp', { ...bearer, cookie: `${NAME}=x` })).statusCode).toBe(200);
    expect((await api.raw('GET', '/admin/otp', { authorization: 'Bearer wrong', cookie })).statusCode).toBe(401);
  });

  test('its use is noted at most once a minute, and a store that cannot note it does not end the call', async () => {
    let notes = 0;
    const api = await adminFixture({
      wrapStore: (store) => ({ ...store, touchSession: () => Promise.reject(new Error(`full ${++notes}`)) }),
    });
    const cookie = await signIn(api);
    for (const wait of [0, MINUTE - 1, 1]) {
      api.advance(wait);
      expect((await get(api, cookie)).statusCode).toBe(200);
    }
    expect(notes).toBe(1);
    expect(api.logged()).toContain('cannot record the use of a session');
  });
});

describe('CSRF, for every call of the OpenAPI description', () => {
  const ADMIN = [...ADMIN_ROLES];

  async function calls(api: AdminFixture): Promise<(readonly [method: string, url: string])[]> {
    const { paths } = (await api.call('GET', '/admin/openapi.json')).json() as { paths: Record<string, object> };
    return Object.entries(paths)
      .filter(([path]) => path.startsWith('/admin/'))
      .flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => [method.toUpperCase(), path.replace(/\{\w+\}/g, '1')] as const),
      )
      .filter(([method, url]) => method !== 'POST' || url !== '/admin/session');
  }

  test('a page of another site gets 403 with the cookie, and what does not say where it comes from changes nothing', async () => {
    const api = await adminFixture({ auth: tokens(ADMIN) });
    const cookie = await signIn(api);
    for (const [method, url] of await calls(api)) {
      for (const from of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        ...(method === 'GET' ? [] : [{}, { 'sec-fetch-site': 'none' }]),
      ]) {
        const answer = await api.raw(method, url, { host: HOST, cookie, ...from });
        expect([answer.statusCode, failure(answer).code], `${method} ${url}`).toEqual([403, 'CROSS_SITE']);
      }
    }
    expect((await get(api, cookie)).statusCode).toBe(200);
  });

  test("the console's own page is accepted with either header; a form cannot send a valid call", async () => {
    const api = await adminFixture({ auth: tokens(ADMIN) });
    const cookie = await signIn(api);
    for (const from of [{ 'sec-fetch-site': 'same-origin' }, { origin: `https://${HOST}` }]) {
      const headers = { host: HOST, cookie, ...from };
      const send = (type: string) =>
        api.raw('POST', '/admin/otp', { ...headers, 'content-type': type }, '{"client_id":"a"}');
      expect((await send('application/json')).statusCode).toBe(201);
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
        expect((await send(type)).statusCode).toBe(415);
    }
  });
});
