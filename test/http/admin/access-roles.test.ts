/** Role × call × outcome, for every call of the OpenAPI description. */
import { createHash } from 'node:crypto';
import fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_ROLES, type AdminRole } from '../../../src/config/vocabulary.ts';
import { accessOf } from '../../../src/http/admin/access.ts';
import { deviceRow, event } from '../../store/rows.ts';
import { adminFixture, failure, type AdminFixture } from './support.ts';
import { expectWholeBody } from './typed.ts';

/** The calls of each role except `admin`, which may make all; a call in no list is for `admin` only. */
const MAY: Readonly<Record<Exclude<AdminRole, 'admin'>, readonly RegExp[]>> = {
  ra: [
    /^\w+ \/admin\/otp/,
    /^\w+ \/admin\/devices/,
    /^\w+ \/admin\/requests/,
    /^\w+ \/admin\/renewals/,
    /^post \/admin\/check$/,
    /^get \/admin\/certificates/,
    /^post \/admin\/certificates\/((\{serial\}\/)?revoke|\{serial\}\/release)$/,
    /^(post|delete) \/admin\/certificates\/\{serial\}\/rescue$/,
    /^get \/admin\/cas\/\{label\}\/rollover$/,
    /^get \/admin\/(fleet(\/summary)?|overview|statistics|events|history|service)$/,
  ],
  auditor: [
    /^get \/admin\/(audit|certificates|requests|devices|fleet|renewals|overview|statistics|events|history|service)/,
    /^get \/admin\/cas\/\{label\}\/rollover$/,
  ],
  operator: [
    /^get \/admin\/(fleet\/summary|overview|statistics|events|configuration|notifications|service)$/,
    /^get \/metrics$/,
    /^get \/admin\/cas/,
    /^\w+ \/admin\/lockouts/,
    /^post \/admin\/(reload|cas\/\{label\}\/crl|notifications\/\{name\}\/test)$/,
  ],
};
const EVERYBODY = ['get /admin/openapi.json', 'get /admin/session', 'post /admin/session', 'delete /admin/session'];
const PUBLIC = ['get /healthz', 'get /readyz', 'get /auth/oidc/login', 'get /auth/oidc/callback'];

interface Operation {
  readonly 'x-roles'?: readonly string[];
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, unknown>>;
}

const tokenOf = (holder: string): string => `the-token-of-${holder}`;
const hashOf = (token: string): string => `sha256:${createHash('sha256').update(token).digest('hex')}`;

let api: AdminFixture;
let close: () => Promise<void>;
let calls: readonly (readonly [name: string, method: string, path: string, operation: Operation])[];
beforeAll(async () => {
  const roles = [...ADMIN_ROLES.map((role) => [role, [role]] as const), ['nobody', []] as const];
  const tokens = roles.map(([holder, own]) => ({
    token_hash: hashOf(tokenOf(holder)),
    description: holder,
    roles: own,
  }));
  api = await adminFixture({ auth: { bearer_token: { enabled: true, tokens } }, onEnd: (end) => (close = end) });
  const { paths } = (await as('nobody', 'GET', '/admin/openapi.json')).json() as {
    paths: Record<string, Record<string, Operation>>;
  };
  calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method} ${path}`, method, path, operation] as const),
  );
});
afterAll(() => close());

const as = <M extends string, U extends string>(holder: string, method: M, url: U) =>
  api.raw(method, url, { authorization: `Bearer ${tokenOf(holder)}` });

/** The expected roles, apart from what the description says. */
function mayCall(role: AdminRole, call: string): boolean {
  if (role === 'admin' || EVERYBODY.includes(call)) return true;
  return MAY[role].some((pattern) => pattern.test(call));
}

describe('role × call × outcome, of the OpenAPI description', () => {
  test('every call says which roles it needs, and they are the expected ones', () => {
    expect(calls.length).toBeGreaterThan(20);
    for (const [name, , , operation] of calls) {
      if (PUBLIC.includes(name)) {
        expect([operation.security, operation['x-roles']], name).toEqual([[], undefined]);
        continue;
      }
      expect(operation['x-roles'], name).toEqual(ADMIN_ROLES.filter((role) => mayCall(role, name)));
      expect(Object.keys(operation.responses), name).toContain('403');
    }
  });

  test.each(ADMIN_ROLES)(
    '%s gets past the roles where the table lets it, else 403 that names those it needs',
    async (role) => {
      for (const [name, method, path, operation] of calls) {
        const answer = await as(role, method.toUpperCase(), path.replace(/\{\w+\}/g, '1'));
        if (PUBLIC.includes(name) || mayCall(role, name)) expect([401, 403], name).not.toContain(answer.statusCode);
        else
          expect(failure(answer), name).toEqual({
            statusCode: 403,
            code: 'ROLE_MISSING',
            message: `this call needs the role ${(operation['x-roles'] ?? []).join(' or ')}`,
          });
      }
    },
  );

  test('without a role there is nothing but the description and who one is', async () => {
    for (const [name, method, path] of calls) {
      const { statusCode } = await as('nobody', method.toUpperCase(), path.replace(/\{\w+\}/g, '1'));
      expect(statusCode === 403, name).toBe(!EVERYBODY.includes(name) && !PUBLIC.includes(name));
    }
    expect((await as('nobody', 'GET', '/admin/nothing')).statusCode).toBe(404);
    expect((await as('nobody', 'PUT', '/admin/otp')).statusCode).toBe(405);
  });

  test('the role comes before the body, and HEAD is as GET', async () => {
    const headers = { authorization: `Bearer ${tokenOf('auditor')}`, 'content-type': 'text/plain' };
    expect(failure(await api.raw('POST', '/admin/otp', headers, 'x'.repeat(100_000))).code).toBe('ROLE_MISSING');
    expect((await as('auditor', 'HEAD', '/admin/otp')).statusCode).toBe(403);
    expect((await as('auditor', 'HEAD', '/admin/devices')).statusCode).toBe(200);
  });

  test.each([
    ['admin', true],
    ['auditor', true],
    ['ra', false],
    ['operator', false],
    ['nobody', false],
  ])('details, addresses and hashes of audit records: shown to %s %s, by whatever call', async (role, shown) => {
    const row = deviceRow({ id: `of-${role}` });
    const about = {
      detail: 'a-detail',
      reason: 'why',
      address: '192.0.2.99',
      request_id: `request-of-${role}`,
      subject: row.id,
    };
    const types = [
      'device.created',
      'certificate.denied',
      'otp.used',
      'auth.otp',
      'admin.access',
      'config.reload',
    ] as const;
    const details = types.map((type) => event(type, { ...about, detail: `device ${row.id}: a-detail` }));
    await api.store.putDevices([{ row, events: details }], 'create');
    const reads = calls.filter(([, method, path]) => method === 'get' && path !== '/admin/events');
    const bodies = new Map<string, string>();
    for (const url of [
      ...reads.map(([, , path]) => path.replace(/\{\w+\}/g, row.id)),
      `/admin/history?device=${row.id}`,
      `/admin/history?requester=${row.id}`,
      `/admin/history?request_id=request-of-${role}`,
    ])
      bodies.set(url, (await as(role, 'GET', url)).body);
    const telling = [...bodies].filter(([, body]) => /a-detail|192\.0\.2\.99|"hash":"/.test(body)).map(([url]) => url);
    expect(telling.toSorted()).toEqual(
      shown
        ? [
            '/admin/audit',
            `/admin/devices/of-${role}`,
            ...['device=', 'request_id=request-', 'requester='].map((filter) => `/admin/history?${filter}of-${role}`),
          ]
        : [],
    );
    if (role === 'ra') {
      const { events } = JSON.parse(bodies.get(`/admin/devices/of-ra`) ?? '') as { events: Record<string, string>[] };
      expect(events.map(({ type }) => type)).toEqual(['auth.otp', 'otp.used', 'certificate.denied', 'device.created']);
      expect(events.map(({ reason }) => reason)).toEqual(['why', 'why', 'why', 'why']);
    }
  });

  test('a call beyond the roles is on record, also one that would only have read', async () => {
    await as('operator', 'GET', '/admin/otp');
    const { items } = await api.store.listAudit({ limit: 1000, type: 'admin.access' });
    expect(items.at(-1)).toMatchObject({
      outcome: 'failure',
      subject: 'operator',
      detail: 'GET /admin/otp: ROLE_MISSING',
    });
  });

  test('a route without a rule does not start', () => {
    expect(() => accessOf({ url: '/admin/new' })).toThrow('/admin/new does not say who may call it');
    expect(() => api.app.get('/admin/new', () => 'x')).toThrow();
    const bare = fastify();
    bare.addHook('onRoute', (route) => void accessOf(route));
    expect(() => bare.get('/admin/new', () => 'x')).toThrow('does not say who may call it');
  });
});

describe('GET /admin/session', () => {
  test('says who the caller is', async () => {
    expectWholeBody(await as('auditor', 'GET', '/admin/session'), {
      subject: 'auditor',
      method: 'bearer',
      roles: ['auditor'],
      grants: [{ roles: ['auditor'], labels: null }],
      not_after: null,
    });
  });
});
