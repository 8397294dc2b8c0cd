import { createHash } from 'node:crypto';
import type { ServerOptions } from 'node:https';
import { Agent } from 'node:https';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AdminAuthSettings } from '../../../src/auth/admin-authenticator.ts';
import { ClientTrust } from '../../../src/auth/mtls/client-trust.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { adminFixture, bearer, TOKEN, type AdminFixture, type FixtureOptions } from './support.ts';
import {
  dns,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeClient,
  subjectAltName,
  type Issuer,
} from '../../support/certificates.ts';
import { call, sendRaw, type Answer, type Call, type ClientTls } from '../../support/https.ts';
import { pkcs8Pem } from '../../support/keys.ts';
import { clientTrust } from '../../support/client-trust.ts';

const pem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);
const NOW_MS = Date.now();

let root: Issuer;
let server: Issuer;
let admin: Issuer;
let device: Issuer;
let expired: Issuer;
let trust: ClientTrust;

beforeAll(async () => {
  root = await makeCa('CN=Admin root');
  server = await makeClient('CN=localhost', root, {
    extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
  });
  admin = await makeClient('CN=Ada Admin', root);
  expired = await makeClient('CN=Former Admin', root, { notAfter: NOW_MS - 86_400_000 });
  device = await makeClient('CN=device-1', await makeCa('CN=Device root'));
  trust = await clientTrust({ trustAnchors: pem(root) });
});

interface Listening extends AdminFixture {
  readonly port: number;
  readonly send: (call: Partial<Call> & { path: string }, client?: Issuer) => Promise<Answer>;
}

/** The admin listener over TLS, set up as a configuration with this mode asks for. */
async function listening(auth: Partial<AdminAuthSettings>, more: FixtureOptions = {}): Promise<Listening> {
  const mode = auth.mode ?? 'none';
  const tls: ServerOptions = {
    cert: pem(server),
    key: pkcs8Pem(server.keys),
    minVersion: 'TLSv1.2',
    requestCert: mode !== 'none',
    rejectUnauthorized: mode === 'required',
    ca: [...trust.tlsCertificates],
    allowPartialTrustChain: true,
  };
  const fixture = await adminFixture({ start: NOW_MS, tls, auth: { trust, ...auth }, ...more });
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  const address = fixture.app.server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const { port } = address;
  return { ...fixture, port, send: (options, client) => call({ port, tls: clientTls(client), ...options }) };
}

const clientTls = (client?: Issuer): ClientTls => ({
  ca: pem(root),
  ...(client === undefined ? {} : { cert: pem(client), key: pkcs8Pem(client.keys) }),
});
const off = { enabled: false, tokens: [] };

describe('service-spec, admin authentication: by bearer token, by mTLS, or both, as configured', () => {
  it('bearer token alone', async () => {
    const { send, store } = await listening({ mode: 'none' });
    expect((await send({ path: '/admin/otp', headers: bearer })).status).toBe(200);
    for (const authorization of [
      undefined,
      'Bearer wrong',
      'Bearer ',
      'Bearer',
      `Basic ${Buffer.from('a:b').toString('base64')}`,
      'Bearer an-admin-token-of-the-tests extra',
    ]) {
      const answer = await send({
        path: '/admin/otp',
        ...(authorization === undefined ? {} : { headers: { authorization } }),
      });
      expect([answer.status, answer.headers['www-authenticate']], authorization).toEqual([401, 'Bearer']);
      expect(JSON.parse(answer.text)).toMatchObject({ statusCode: 401, error: 'Unauthorized' });
    }
    expect((await send({ path: '/admin/otp' }, admin)).status, 'a certificate counts for nothing').toBe(401);
    const failures = await store.listAudit({ limit: 100, type: 'auth.admin' });
    expect(failures.items).toHaveLength(5);
    expect(JSON.stringify(failures)).not.toContain('extra');
  });

  it('mTLS alone (required): no handshake without a certificate of the admin CA, and a token does not help', async () => {
    const { send, port, store } = await listening({ mode: 'required', bearer_token: off });
    expect((await send({ path: '/admin/otp' }, admin)).status).toBe(200);
    for (const client of [undefined, device, expired]) {
      const attempt = send({ path: '/admin/otp', headers: bearer }, client);
      await expect(attempt, client?.subject ?? 'no certificate').rejects.toThrow();
    }
    await send(
      {
        path: '/admin/otp',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"client_id":"d"}',
      },
      admin,
    );
    const { items } = await store.listAudit({ limit: 100, type: 'admin.access' });
    expect(items).toMatchObject([{ outcome: 'success', subject: 'CN=Ada Admin', address: '127.0.0.1' }]);
    expect(port).toBeGreaterThan(0);
  });

  it('either (optional): a certificate or a token; a device certificate never makes an admin', async () => {
    const { send } = await listening({ mode: 'optional' });
    expect((await send({ path: '/admin/otp' }, admin)).status).toBe(200);
    expect((await send({ path: '/admin/otp', headers: bearer })).status).toBe(200);
    expect((await send({ path: '/admin/otp', headers: bearer }, device)).status, 'the token is enough').toBe(200);
    for (const client of [undefined, device, expired]) {
      const answer = await send({ path: '/admin/otp' }, client);
      expect([answer.status, answer.headers['www-authenticate']], client?.subject).toEqual([401, 'Bearer']);
    }
  });

  it('stack.md: a resumed TLS session still carries the certificate', async () => {
    const { port } = await listening({ mode: 'optional', bearer_token: off });
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 10 });
    for (const [turn, maxVersion] of (['TLSv1.2', 'TLSv1.2', 'TLSv1.3', 'TLSv1.3'] as const).entries()) {
      const answer = await call({ port, path: '/admin/cas', tls: { ...clientTls(admin), maxVersion }, agent });
      expect(answer.status, `connection ${turn}`).toBe(200);
    }
    agent.destroy();
  });
});

describe('the admin API on the wire', () => {
  it.each([
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['no Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['two lengths', 'POST /admin/otp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}', 400],
    [
      'length and chunks',
      'POST /admin/otp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['a NUL in a header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n', 400],
    ['a header of 32 kB', `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(32_768)}\r\n\r\n`, 431],
  ])('%s is answered with an error body, and the server goes on', async (_name, bytes, status) => {
    const { port, send } = await listening({});
    const answer = await sendRaw(port, clientTls(), bytes);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(head).toMatch(/^content-type: application\/json/im);
    expect(JSON.parse(body)).toEqual({
      statusCode: status,
      error: expect.any(String) as string,
      code: expect.stringMatching(/^[A-Z_]+$/) as string,
      message: expect.any(String) as string,
    });
    expect((await send({ path: '/healthz' })).status).toBe(200);
  });

  it('the issue, Expect: 100-continue is answered after authentication and the cheap checks, not before', async () => {
    const { port } = await listening({});
    const head = (...lines: string[]): string =>
      ['POST /admin/otp HTTP/1.1', 'Host: x', 'Expect: 100-continue', 'Connection: close', ...lines, '', ''].join(
        '\r\n',
      );
    const authorization = `Authorization: ${bearer.authorization}`;
    const json = 'Content-Type: application/json';
    const refused: readonly (readonly [number, ...string[]])[] = [
      [401, json, 'Content-Length: 17'],
      [415, authorization, 'Content-Type: text/plain', 'Content-Length: 17'],
      [413, authorization, json, 'Content-Length: 70000'],
    ];
    for (const [status, ...lines] of refused)
      expect(await sendRaw(port, clientTls(), head(...lines))).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const invited = await sendRaw(
      port,
      clientTls(),
      `${head(authorization, json, 'Content-Length: 17')}{"client_id":"d"}`,
    );
    expect(invited).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 Created\r\n/);
    const other = head(authorization).replace('100-continue', 'miracles');
    expect(await sendRaw(port, clientTls(), other)).toMatch(/^HTTP\/1\.1 417 [^]*"code":"EXPECTATION_FAILED"/);
  });

  it('a body that nobody will read ends the connection with the answer', async () => {
    const { port } = await listening({});
    const request =
      'POST /admin/otp HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\nContent-Type: application/json\r\n\r\n{';
    const answer = await sendRaw(port, clientTls(), request, 10_000);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toMatch(/^connection: close/im);
  });
});

describe('a session is bound to the client certificate', () => {
  const signIn = async ({ send }: Listening, client: Issuer | undefined, headers = {}): Promise<string> => {
    const answer = await send({ method: 'POST', path: '/admin/session', headers }, client);
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  };
  const status = async ({ send }: Listening, cookie: string, client?: Issuer): Promise<number> =>
    (await send({ path: '/admin/session', headers: { cookie } }, client)).status;

  it('that it was begun with: neither another one of its CA nor none will do, and the attempt is on record', async () => {
    const api = await listening({ mode: 'optional', bearer_token: off });
    const other = await makeClient('CN=Ada Admin', root);
    const cookie = await signIn(api, admin);
    expect(await status(api, cookie, admin)).toBe(200);
    for (const client of [other, undefined, device]) expect(await status(api, cookie, client)).toBe(401);
    const { items } = await api.store.listAudit({ limit: 10, order: 'desc', type: 'auth.admin' });
    expect(items[0]?.detail).toBe('session: it was started with another client certificate');
    expect(await status(api, cookie, admin)).toBe(200);
  });

  it('also that of a caller who signed in with a token', async () => {
    const token_hash = `sha256:${createHash('sha256').update(TOKEN).digest('hex')}`;
    const token = { enabled: true, tokens: [{ token_hash, description: 'x' }] };
    const api = await listening({ mode: 'optional', bearer_token: token });
    const cookie = await signIn(api, device, bearer);
    expect([await status(api, cookie, device), await status(api, cookie)]).toEqual([200, 401]);
  });

  it('whose roles it has as the configuration says at each call, and which ends it when it is not trusted any more', async () => {
    let settings: Partial<AdminAuthSettings> = { mode: 'optional', bearer_token: off, default_roles: ['operator'] };
    const api = await listening(settings, { auth: () => ({ trust, ...settings }) });
    const cookie = await signIn(api, admin);
    const get = async (path: string) => (await api.send({ path, headers: { cookie } }, admin)).status;
    expect([await get('/admin/cas'), await get('/admin/otp')]).toEqual([200, 403]);
    settings = { ...settings, default_roles: ['ra'] };
    expect([await get('/admin/cas'), await get('/admin/otp')]).toEqual([403, 200]);
    settings = { ...settings, mode: 'none' };
    expect(await get('/admin/otp')).toBe(401);
  });
});
