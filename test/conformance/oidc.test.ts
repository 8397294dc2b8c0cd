/** `[admin.oidc]` on the built server, with oidc-provider: administrators sign in to the console (OpenID Connect Core §3.1). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TomlTable } from 'smol-toml';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { call, type Answer } from '../support/https.ts';
import { TokenIssuer, WEB_CLIENT, WEB_SECRET } from '../support/token-issuer.ts';
import { until } from '../support/until.ts';
import { freePort } from '../support/ports.ts';

const SESSION = '__Host-estuary-session';
const STATE = '__Host-estuary-oidc';
const GROUPS = {
  ada: ['pki-team', 'others'],
  bob: ['auditors', 'pki-team'],
  mallory: ['others', '__proto__', 'constructor'],
  nobody: [],
};

let issuer: TokenIssuer;
let estuary: Estuary;
let port: number;
const callback = (): string => `https://127.0.0.1:${port}/auth/oidc/callback`;

const oidc = (more: Record<string, string | string[]> = {}): TomlTable => ({
  issuer: issuer.url,
  client_id: WEB_CLIENT,
  client_secret_file: 'oidc-secret',
  trust_anchors: 'idp-ca.pem',
  redirect_url: callback(),
  ...more,
  roles: { 'pki-team': { roles: ['ra'], labels: ['devices'] }, auditors: { roles: ['auditor'] } },
});

beforeAll(async () => {
  issuer = await TokenIssuer.start([]);
  port = await freePort();
  await issuer.serve({ redirectUri: callback(), groups: GROUPS });
  estuary = await Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'idp-ca.pem'), issuer.ca);
      writeFileSync(join(dir, 'oidc-secret'), `${WEB_SECRET}\n`, { mode: 0o600 });
      Object.assign(section(config, 'admin'), { port, oidc: oidc() });
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  await issuer.stop();
});
beforeEach(() => {
  issuer.answer = undefined;
});

async function reload(): Promise<void> {
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
}

/** A browser without scripts: cookies by port, which tells the server from the provider, and no redirect that is not followed by hand. */
class Visitor {
  /** By port. */
  readonly #cookies = new Map<string, Map<string, string>>();

  async get(url: string, body?: Record<string, string>): Promise<Answer> {
    const { port: at, pathname, search } = new URL(url);
    const jar = this.#cookies.get(at) ?? new Map<string, string>();
    this.#cookies.set(at, jar);
    const answer = await call({
      port: Number(at),
      path: `${pathname}${search}`,
      method: body === undefined ? 'GET' : 'POST',
      tls: { ca: at === String(issuer.port) ? issuer.ca : estuary.root },
      headers: {
        Accept: 'text/html',
        Cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
      },
      ...(body === undefined ? {} : { body: new URLSearchParams(body).toString() }),
    });
    for (const cookie of answer.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === '' || /Max-Age=0|expires=Thu, 01 Jan 1970/i.test(cookie)) jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  }

  cookie(name: string, url = callback()): string | undefined {
    return this.#cookies.get(new URL(url).port)?.get(name);
  }

  setCookie(name: string, value: string): void {
    this.#cookies.get(String(port))?.set(name, value);
  }

  /** From the console's link to the redirect that carries the code. */
  async toCode(account: string): Promise<URL> {
    const login = await this.get(callback().replace('callback', 'login'));
    expect([login.status, login.headers.location]).toEqual([303, expect.stringContaining(issuer.url)]);
    let url = String(login.headers.location);
    for (let step = 0; step < 10 && !url.startsWith(callback()); step++) {
      const isForm = url.includes('/interaction/');
      const answer = await this.get(url, isForm ? { prompt: 'login', login: account, password: 'x' } : undefined);
      url = new URL(String(answer.headers.location), url).href;
    }
    return new URL(url);
  }

  async signIn(account: string): Promise<Answer> {
    return this.get((await this.toCode(account)).href);
  }

  session(): Promise<{ readonly status: number; readonly json: Record<string, unknown> }> {
    return this.call('GET', '/admin/session');
  }

  async call(method: string, path: string) {
    const answer = await call({
      port,
      path,
      method,
      tls: { ca: estuary.root },
      headers: { Cookie: `${SESSION}=${this.cookie(SESSION) ?? ''}`, Origin: `https://127.0.0.1:${port}` },
    });
    return {
      status: answer.status,
      json: (answer.text === '' ? {} : JSON.parse(answer.text)) as Record<string, unknown>,
    };
  }
}

const lastFailure = async (): Promise<unknown> => {
  const { json } = await estuary.admin('GET', '/admin/audit?type=auth.admin&order=desc&limit=1');
  return itemsOf(json)[0];
};

test('an administrator signs in, has the roles and labels of the claims, and signs out', async () => {
  const visitor = new Visitor();
  const answer = await visitor.signIn('ada');
  expect([answer.status, answer.headers.location, answer.headers['cache-control']]).toEqual([303, '/', 'no-store']);
  expect(answer.headers['set-cookie']).toEqual([
    expect.stringMatching(new RegExp(`^${STATE}=; .*Max-Age=0`)),
    expect.stringMatching(new RegExp(`^${SESSION}=[^;]{43}; Path=/; Secure; HttpOnly; SameSite=Strict$`)),
  ]);
  const { status, json } = await visitor.session();
  expect(status).toBe(200);
  expect(json).toMatchObject({
    subject: `${issuer.url} ada`,
    name: 'Display of ada',
    method: 'oidc',
    roles: ['ra'],
    grants: [{ roles: ['ra'], labels: ['devices'] }],
    session: { idle_timeout: 900 },
  });
  expect((await visitor.call('GET', '/admin/requests')).status).toBe(200);
  expect((await visitor.call('GET', '/admin/audit')).json).toMatchObject({ code: 'ROLE_MISSING' });
  expect(await lastFailure()).toMatchObject({ outcome: 'success', subject: `${issuer.url} ada`, method: 'oidc' });
  const stolen = visitor.cookie(SESSION) ?? '';
  expect((await visitor.call('DELETE', '/admin/session')).status).toBe(204);
  visitor.setCookie(SESSION, stolen);
  expect((await visitor.session()).json).toMatchObject({ code: 'SESSION_ENDED' });
});

test('several values of the claim give the roles of all, each with its own labels', async () => {
  const visitor = new Visitor();
  await visitor.signIn('bob');
  expect((await visitor.session()).json).toMatchObject({
    grants: [
      { roles: ['auditor'], labels: null },
      { roles: ['ra'], labels: ['devices'] },
    ],
  });
});

test('the request has PKCE with S256, state and nonce; the cookie is Lax and lasts ten minutes', async () => {
  const visitor = new Visitor();
  const login = await visitor.get(callback().replace('callback', 'login'));
  const query = new URL(String(login.headers.location)).searchParams;
  expect(Object.fromEntries(query)).toMatchObject({
    response_type: 'code',
    client_id: WEB_CLIENT,
    redirect_uri: callback(),
    scope: 'openid profile',
    code_challenge_method: 'S256',
  });
  for (const name of ['code_challenge', 'state', 'nonce']) expect(query.get(name), name).toMatch(/^[\w-]{43}$/);
  const [cookie = ''] = login.headers['set-cookie'] ?? [];
  expect(cookie).toMatch(new RegExp(`^${STATE}=[\\w-]+; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$`));
  // "code" and "S256" can be in its random text by chance.
  for (const value of [...query.values()].filter(({ length }) => length > 4)) expect(cookie).not.toContain(value);
});

describe('refused, and audited', () => {
  const refusal = async (visitor: Visitor, url: string): Promise<Answer> => {
    const answer = await visitor.get(url);
    expect(answer.status, answer.text).toBe(401);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer.text).toContain('signing in at the OpenID provider failed; start again');
    expect(visitor.cookie(SESSION)).toBeUndefined();
    expect(visitor.cookie(STATE)).toBeUndefined();
    expect(await lastFailure()).toMatchObject({ outcome: 'failure', method: 'oidc', address: '127.0.0.1' });
    return answer;
  };

  test('a stolen code, in another browser: without a state, and with the state of another attempt', async () => {
    const [victim, thief] = [new Visitor(), new Visitor()];
    const code = await victim.toCode('ada');
    await refusal(thief, code.href);
    const own = await thief.toCode('mallory');
    await refusal(thief, code.href);
    // With a state that the thief may use, the code does not go with the verifier (PKCE).
    await thief.toCode('mallory');
    own.searchParams.set('code', code.searchParams.get('code') ?? '');
    await thief.get(callback().replace('callback', 'login'));
    const begun = await thief.get(callback().replace('callback', 'login'));
    const state = new URL(String(begun.headers.location)).searchParams.get('state') ?? '';
    own.searchParams.set('state', state);
    await refusal(thief, own.href);
  });

  test('a code that was used, also with the state that goes with it', async () => {
    const visitor = new Visitor();
    const code = await visitor.toCode('ada');
    const sealed = visitor.cookie(STATE) ?? '';
    expect((await visitor.get(code.href)).status).toBe(303);
    await visitor.call('DELETE', '/admin/session');
    const again = new Visitor();
    await again.get(callback().replace('callback', 'login'));
    again.setCookie(STATE, sealed);
    await refusal(again, code.href);
  });

  test.each([
    ['another state', (url: URL) => url.searchParams.set('state', 'x'.repeat(43))],
    ['no state', (url: URL) => url.searchParams.delete('state')],
    ['two states', (url: URL) => url.searchParams.append('state', 'x')],
    ['a made-up code', (url: URL) => url.searchParams.set('code', 'x'.repeat(43))],
    ['no code', (url: URL) => url.searchParams.delete('code')],
    ['another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example')],
    [
      'an error of the provider',
      (url: URL) => (url.search = `?error=access_denied&state=${url.searchParams.get('state') ?? ''}`),
    ],
  ])('%s', async (_, change) => {
    const visitor = new Visitor();
    const url = await visitor.toCode('ada');
    change(url);
    await refusal(visitor, url.href);
  });

  test('a cookie that was changed', async () => {
    const visitor = new Visitor();
    const url = await visitor.toCode('ada');
    const sealed = visitor.cookie(STATE) ?? '';
    visitor.setCookie(STATE, `${sealed.slice(0, -2)}${sealed.endsWith('AA') ? 'BB' : 'AA'}`);
    await refusal(visitor, url.href);
  });

  test.each(['mallory', 'nobody'])('%s has no group with a role: 403', async (account) => {
    const visitor = new Visitor();
    const answer = await visitor.signIn(account);
    expect([answer.status, visitor.cookie(SESSION)]).toEqual([403, undefined]);
    expect(answer.text).toContain('your groups at the OpenID provider have no role here');
    const failure = await lastFailure();
    expect(failure).toMatchObject({ outcome: 'failure' });
    expect(JSON.stringify(failure)).toContain(`groups of ${account}: `);
  });
});

describe('a provider that is slow, gone or broken fails closed and delays nobody else', () => {
  test('it does not answer: signing in is 503 in the end; tokens, sessions and the console go on meanwhile', async () => {
    const signedIn = new Visitor();
    await signedIn.signIn('ada');
    // The server waits five seconds. On a busy machine, the other calls can take longer: then they are made again.
    await until('other calls are answered while one waits for the provider', async () => {
      issuer.answer = undefined;
      const late = new Visitor();
      const code = await late.toCode('ada');
      const asked = Promise.withResolvers<undefined>();
      issuer.answer = () => asked.resolve(undefined);
      let isOver = false;
      const over = late.get(code.href).finally(() => (isOver = true));
      over.catch(() => undefined);
      await asked.promise;
      expect((await estuary.admin('GET', '/admin/session')).status).toBe(200);
      expect((await signedIn.session()).status).toBe(200);
      expect((await signedIn.get(`https://127.0.0.1:${port}/healthz`)).status).toBe(200);
      const wasOver = isOver;
      const answer = await over;
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, '30']);
      expect(late.cookie(SESSION)).toBeUndefined();
      return !wasOver;
    });
  });

  test.each<[string, (response: Parameters<NonNullable<TokenIssuer['answer']>>[1]) => void]>([
    ['hangs up', (response) => void response.socket?.destroy()],
    ['answers 500', (response) => void response.writeHead(500).end()],
  ])('it %s: 503', async (_, answer) => {
    const visitor = new Visitor();
    const code = await visitor.toCode('ada');
    issuer.answer = (_request, response) => answer(response);
    const { status, text } = await visitor.get(code.href);
    expect([status, visitor.cookie(SESSION)]).toEqual([503, undefined]);
    expect(text).toContain('the OpenID provider is temporarily unavailable');
  });

  test('it answers with something else: refused', async () => {
    const visitor = new Visitor();
    const code = await visitor.toCode('ada');
    issuer.answer = (_request, response) =>
      void response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    expect((await visitor.get(code.href)).status).toBe(401);
  });

  test('keys that were rotated: the new one counts', async () => {
    const visitor = new Visitor();
    await issuer.rotate();
    estuary.reconfigure(() => undefined);
    await reload();
    expect((await visitor.signIn('ada')).status).toBe(303);
  });
});

describe('a reload', () => {
  const withOidc = async (table: TomlTable | undefined): Promise<void> => {
    estuary.reconfigure((config) => {
      const admin = section(config, 'admin');
      if (table === undefined) delete admin['oidc'];
      else admin['oidc'] = table;
    });
    await reload();
  };

  test('that takes a role away takes it from the session; one without [admin.oidc] ends it', async () => {
    const visitor = new Visitor();
    await visitor.signIn('bob');
    await withOidc({ ...oidc(), roles: { auditors: { roles: ['auditor'], labels: ['lab'] } } });
    expect((await visitor.session()).json).toMatchObject({ grants: [{ roles: ['auditor'], labels: ['lab'] }] });
    await withOidc({ ...oidc(), roles: { 'another-team': { roles: ['ra'] } } });
    expect((await visitor.session()).json).toMatchObject({ code: 'SESSION_ENDED' });
    await withOidc(oidc());
    expect((await visitor.session()).status).toBe(200);
    await withOidc(undefined);
    expect((await visitor.session()).json).toMatchObject({ code: 'SESSION_ENDED' });
    expect((await visitor.get(callback().replace('callback', 'login'))).status).toBe(404);
    expect((await visitor.get(callback())).status).toBe(404);
    await withOidc(oidc());
  });
});

test('no code, token or secret is in the log or the audit log', async () => {
  const visitor = new Visitor();
  const code = await visitor.toCode('ada');
  const sealed = visitor.cookie(STATE) ?? '';
  await visitor.get(code.href);
  const { json } = await estuary.admin('GET', '/admin/audit?order=desc&limit=100');
  const log = `${await estuary.outputSoFar()}${JSON.stringify(json)}`;
  for (const secret of [code.searchParams.get('code') ?? '-', sealed, visitor.cookie(SESSION) ?? '-', WEB_SECRET])
    expect(log).not.toContain(secret);
});
