import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unavailable } from '../../../src/errors.ts';
import type { Store } from '../../../src/store/store.ts';
import { adminFixture, bearer, failure, type AdminFixture } from './support.ts';

const PROTECTED = [
  ['POST', '/admin/otp'],
  ['GET', '/admin/otp'],
  ['HEAD', '/admin/otp'],
  ['GET', '/admin/otp/1'],
  ['DELETE', '/admin/otp/1'],
  ['GET', '/admin/certificates'],
  ['GET', '/admin/certificates/00'],
  ['GET', '/admin/cas'],
  ['GET', '/admin/cas/devices'],
  ['GET', '/admin/lockouts'],
  ['DELETE', '/admin/lockouts/address:192.0.2.1'],
  ['GET', '/admin/audit'],
  ['GET', '/admin/openapi.json'],
  // unknown, or not what the path takes: still 401 first
  ['GET', '/admin'],
  ['GET', '/admin/'],
  ['GET', '/admin/nope'],
  ['GET', '/admin?x'],
  ['PUT', '/admin/otp'],
  ['OPTIONS', '/admin/otp'],
  ['PROPFIND', '/admin/otp'],
  ['TRACE', '/admin/otp'],
  // other ways to write it
  ['GET', '/%61dmin/otp'],
  ['GET', '/admin%2Fotp'],
  ['GET', '/%61dmin/nope'],
  ['GET', '//admin/otp'],
  ['GET', '/ADMIN/otp'],
  ['GET', '/admin/otp/'],
  ['GET', '/admin/otp?limit=0'],
  ['GET', '/admin/../admin/otp'],
] as const;

describe('everything under /admin needs admin authentication', () => {
  let api: AdminFixture;
  let close: () => Promise<void>;
  beforeAll(async () => {
    api = await adminFixture({ onEnd: (cleanUp) => (close = cleanUp) });
  });
  afterAll(() => close());

  it.each(PROTECTED)('%s %s without credentials never gets past 401', async (method, url) => {
    const response = await api.raw(method, url);
    // Only what is neither /admin nor decoded to it may be 404.
    expect([401, ...(url === '/admin%2Fotp' ? [404] : [])]).toContain(response.statusCode);
    if (response.statusCode === 401) expect(response.headers['www-authenticate']).toBe('Bearer');
    if (method !== 'HEAD') failure(response);
  });

  it('401 comes before the body is looked at', async () => {
    for (const [type, body] of [
      ['text/plain', 'x'],
      ['application/json', '{'],
      ['application/json', JSON.stringify({ client_id: 'x'.repeat(100_000) })],
    ] as const) {
      const response = await api.raw(
        'POST',
        '/admin/otp',
        { 'content-type': type, authorization: 'Bearer wrong' },
        body,
      );
      expect(failure(response).statusCode).toBe(401);
    }
  });

  it('404 for unknown paths, below /admin with authentication and elsewhere without', async () => {
    for (const url of ['/admin', '/admin/', '/admin/nope', '/admin/otp/1/2', '/admin/OTP'])
      expect(failure(await api.call('GET', url)), url).toMatchObject({ statusCode: 404, code: 'NOT_FOUND' });
    for (const url of ['/', '/favicon.ico', '/administrator', '/.well-known/est/cacerts', '/healthz/x'])
      expect(failure(await api.raw('GET', url)), url).toMatchObject({ statusCode: 404, code: 'NOT_FOUND' });
  });

  it.each([
    ['PUT', '/admin/otp', 'GET, HEAD, POST'],
    ['DELETE', '/admin/otp', 'GET, HEAD, POST'],
    ['OPTIONS', '/admin/otp', 'GET, HEAD, POST'],
    ['PROPFIND', '/admin/otp', 'GET, HEAD, POST'],
    ['POST', '/admin/otp/1', 'DELETE, GET, HEAD, PATCH'],
    ['PUT', '/admin/otp/%2F', 'DELETE, GET, HEAD, PATCH'],
    ['PUT', '/admin/certificates', 'GET, HEAD, POST'],
    ['DELETE', '/admin/certificates/00', 'GET, HEAD'],
    ['POST', '/admin/openapi.json?x=1', 'GET, HEAD'],
    ['POST', '/healthz', 'GET, HEAD'],
  ])('405 for %s %s, with Allow', async (method, url, allow) => {
    const response = await api.raw(method, url, bearer);
    expect(failure(response)).toMatchObject({ statusCode: 405, code: 'METHOD_NOT_ALLOWED' });
    expect(response.headers['allow']).toBe(allow);
  });

  it('400 for a path that is no URL, 414 for a part that is too long', async () => {
    expect(failure(await api.call('GET', '/admin/%zz'))).toMatchObject({ statusCode: 400, code: 'BAD_PATH' });
    expect(failure(await api.call('GET', `/admin/otp/${'x'.repeat(2000)}`))).toMatchObject({ statusCode: 414 });
  });

  it('HEAD answers as GET does, without the body', async () => {
    const response = await api.call('HEAD', '/admin/otp');
    expect([response.statusCode, response.body]).toEqual([200, '']);
  });

  it('says neither what serves nor whom else it would answer: no Server, no X-Powered-By, no CORS; no-store', async () => {
    const answers = [
      await api.call('POST', '/admin/otp', { client_id: 'd' }),
      await api.raw('GET', '/admin/otp', { ...bearer, origin: 'https://evil.example' }),
      await api.raw('OPTIONS', '/admin/otp', {
        origin: 'https://evil.example',
        'access-control-request-method': 'POST',
      }),
    ];
    for (const { headers } of answers) {
      const names = Object.keys(headers);
      expect(names.filter((name) => /^(server|x-powered-by|access-control-)/.test(name))).toEqual([]);
      expect(headers['cache-control']).toBe('no-store');
    }
  });
});

describe('admin access is audited', () => {
  it('a call that changes something and is refused is on record, by its route and never by what was pasted', async () => {
    const { call, store } = await adminFixture();
    await call('POST', '/admin/otp', { client_id: '' });
    await call('DELETE', '/admin/otp/a-pasted-secret');
    await call('POST', '/admin/nope');
    await call('GET', '/admin/otp/1');
    const { items } = await store.listAudit({ limit: 100 });
    expect(items).toMatchObject([
      { type: 'admin.access', outcome: 'failure', subject: 'test admin', detail: 'POST /admin/otp: FIELD_INVALID' },
      {
        type: 'admin.access',
        outcome: 'failure',
        address: '127.0.0.1',
        detail: 'DELETE /admin/otp/:id: OTP_NOT_FOUND',
      },
    ]);
  });

  it('every call is logged with who, route, status and address, without credentials', async () => {
    const { call, logged } = await adminFixture();
    await call('GET', '/admin/otp/1?limit=3');
    expect(logged()).toContain(
      '"address":"127.0.0.1","operation":"GET /admin/otp/:id","ca":null,"requester":"test admin","method":"bearer","status":400,',
    );
    expect(logged()).not.toContain('an-admin-token');
  });

  it('while the audit log cannot be written nothing is changed, and the answer says 503', async () => {
    const broken = (store: Store): Store =>
      new Proxy(store, {
        get: (target, name) =>
          ['insertOtp', 'revokeOtp', 'audit', 'deleteLockout'].includes(String(name))
            ? () =>
                Promise.reject(unavailable('AUDIT_UNAVAILABLE', 'the audit log cannot be written', { retryAfter: 5 }))
            : (Reflect.get(target, name) as unknown),
      });
    const { call, store, logged } = await adminFixture({ wrapStore: broken });
    const response = await call('POST', '/admin/otp', { client_id: 'd' });
    expect(failure(response)).toEqual({
      statusCode: 503,
      code: 'AUDIT_UNAVAILABLE',
      message: 'the audit log cannot be written',
    });
    expect(response.headers['retry-after']).toBe('5');
    expect((await store.listOtps({ limit: 10 }, 0)).items).toEqual([]);
    expect(logged()).toContain('cannot audit a rejected admin call');
  });

  it('what fails unexpectedly is a bare 500; the log has the reason', async () => {
    const { call, logged } = await adminFixture({
      wrapStore: (store) =>
        new Proxy(store, {
          get: (target, name) =>
            name === 'listOtps'
              ? () => Promise.reject(new Error('disk /dev/sdz1 on fire'))
              : (Reflect.get(target, name) as unknown),
        }),
    });
    const response = await call('GET', '/admin/otp');
    expect(failure(response)).toEqual({
      statusCode: 500,
      code: 'INTERNAL_ERROR',
      message: 'the request failed inside the server',
    });
    expect(logged()).toContain('/dev/sdz1');
  });
});
