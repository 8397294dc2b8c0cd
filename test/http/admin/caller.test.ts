/** Requests that a browser sends for another site's page are rejected, with any method. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminFixture, type AdminFixture, bearer, failure } from './support.ts';

let api: AdminFixture;
let close: () => Promise<void>;
beforeAll(async () => {
  api = await adminFixture({ onEnd: (cleanUp) => (close = cleanUp) });
});
afterAll(() => close());

const HOST = 'admin.example:9444';
const CALLS = [
  ['GET', '/admin/otp', 200],
  ['POST', '/admin/requests/1/approve', 404],
  ['DELETE', '/admin/otp/1', 404],
  ['GET', '/admin/openapi.json', 200],
  ['GET', '/admin/nothing', 404],
] as const;

const call = async (method: string, url: string, headers: Record<string, string>): Promise<number> =>
  (await api.raw(method, url, { ...bearer, host: HOST, ...headers })).statusCode;

describe.each(CALLS)('%s %s', (method, url, status) => {
  test.each<[string, Record<string, string>]>([
    ['no browser', {}],
    ["the admin's own page", { 'sec-fetch-site': 'same-origin', origin: `https://${HOST}` }],
    ['the address bar', { 'sec-fetch-site': 'none' }],
    ['a browser that has no Fetch Metadata', { origin: `https://${HOST}` }],
    ['the name in capitals', { origin: `https://${HOST.toUpperCase()}` }],
  ])('%s passes', async (_, headers) => {
    expect(await call(method, url, headers)).toBe(status);
  });

  test.each<[string, Record<string, string>]>([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another origin of the site', { 'sec-fetch-site': 'same-site' }],
    ['a value of tomorrow', { 'sec-fetch-site': 'same-origin, cross-site' }],
    ['another origin', { origin: 'https://evil.example' }],
    ['another port', { origin: 'https://admin.example' }],
    ['plain HTTP', { origin: `http://${HOST}` }],
    ['an opaque origin', { origin: 'null' }],
    ['another origin that says it is the same', { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' }],
  ])('%s: 403', async (_, headers) => {
    const answer = await api.raw(method, url, { ...bearer, host: HOST, ...headers });
    expect([answer.statusCode, failure(answer).code]).toEqual([403, 'CROSS_SITE']);
  });
});

test('without credentials it is 401, with them the attempt to change something is on record', async () => {
  const foreign = { host: HOST, 'sec-fetch-site': 'cross-site' };
  expect((await api.raw('POST', '/admin/otp', foreign)).statusCode).toBe(401);
  expect((await api.raw('POST', '/admin/otp', { ...bearer, ...foreign })).statusCode).toBe(403);
  const { items } = await api.store.listAudit({ limit: 1000, type: 'admin.access' });
  expect(items.at(-1)).toMatchObject({ outcome: 'failure', detail: 'POST /admin/otp: CROSS_SITE' });
});

test('a POST without a body needs no Content-Type; one with a body wants JSON', async () => {
  expect(await call('POST', '/admin/requests/1/approve', {})).toBe(404);
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    const headers = { ...bearer, 'content-type': type };
    expect((await api.raw('POST', '/admin/otp', headers, '{"client_id":"a"}')).statusCode).toBe(415);
  }
});

describe('every call of the OpenAPI description', () => {
  interface Described {
    readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  }
  const TYPES = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json-seq',
    '',
  ];

  const calls = async () => {
    const { paths } = (await api.call('GET', '/admin/openapi.json')).json() as {
      paths: Record<string, Record<string, Described>>;
    };
    return Object.entries(paths)
      .filter(([path]) => path.startsWith('/admin/'))
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(
          ([method, operation]) => [method.toUpperCase(), path.replace(/\{\w+\}/g, '1'), operation] as const,
        ),
      );
  };
  const send = (method: string, url: string, headers: Record<string, string>, body?: string) =>
    api.raw(method, url, { ...bearer, host: HOST, ...headers }, body);

  test('from another site: 403, whatever the method; from its own page or the address bar, and without a browser: not', async () => {
    for (const [method, url] of await calls()) {
      for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
        const answer = await send(method, url, headers);
        expect([answer.statusCode, failure(answer).code], `${method} ${url}`).toEqual([403, 'CROSS_SITE']);
      }
      for (const headers of [
        { 'sec-fetch-site': 'same-origin', origin: `https://${HOST}` },
        { 'sec-fetch-site': 'none' },
      ])
        expect((await send(method, url, headers)).statusCode, `${method} ${url}`).not.toBe(403);
    }
  });

  test('a body of a type that a form can send: 415, without a type: 400, and 401 comes first', async () => {
    for (const [method, url] of await calls())
      for (const type of TYPES) {
        const answer = await send(method, url, type === '' ? {} : { 'content-type': type }, '{"a": 1}');
        // Fastify gives a GET no body, so that it has none to refuse.
        const refused = type === '' ? 400 : 415;
        if (method === 'GET' && answer.statusCode !== refused) continue;
        expect(answer.statusCode, `${method} ${url} ${type}`).toBe(refused);
        const unknown = { host: HOST, 'content-type': type };
        expect((await api.raw(method, url, unknown, '{"a": 1}')).statusCode, `${method} ${url}`).toBe(401);
      }
  });

  test('a body of a type that the call describes is read', async () => {
    for (const [method, url, { requestBody }] of await calls())
      for (const type of Object.keys(requestBody?.content ?? {}))
        expect(
          (await send(method, url, { 'content-type': type }, '{')).statusCode,
          `${method} ${url} ${type}`,
        ).not.toBe(415);
  });

  test('`curl -X POST` without a body is no matter of its type', async () => {
    for (const [method, url] of await calls())
      // Rows say in which format they are.
      if (method !== 'GET' && url !== '/admin/otp/bulk')
        expect((await send(method, url, {})).statusCode, `${method} ${url}`).not.toBe(415);
  });
});

test('what needs no administrator answers every browser', async () => {
  expect((await api.raw('GET', '/healthz', { 'sec-fetch-site': 'cross-site' })).statusCode).toBe(200);
});
