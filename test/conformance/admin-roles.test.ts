/** Roles of certificates, sessions, and events, on the built server. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { Estuary, section } from '../support/estuary.ts';
import { call, type Answer, type ClientTls } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { untilLogged } from '../support/server-process.ts';

let estuary: Estuary;
const people = new Map<string, Issuer>();

beforeAll(async () => {
  const ca = await makeCa('CN=Administrators');
  for (const name of ['ra', 'auditor', 'operator', 'nobody']) people.set(name, await makeClient(`CN=${name}`, ca));
  const auditor = createHash('sha256')
    .update(people.get('auditor')?.der ?? '')
    .digest('hex');
  estuary = await Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'admin/own.pem'), encodePem('CERTIFICATE', ca.der));
      const trust = { trust_anchors: 'admin/own.pem', mode: 'optional', default_roles: [] };
      Object.assign(section(config, 'admin', 'tls'), trust);
      section(config, 'admin')['clients'] = [
        { subject: 'CN=ra', issuer: 'CN=Administrators', roles: ['ra'] },
        { fingerprint: `sha256:${auditor}`, roles: ['auditor'] },
        { subject: 'cn=OPERATOR', issuer: 'cn=administrators', roles: ['operator'] },
      ];
      const tokens = section(config, 'admin', 'bearer_token')['tokens'];
      const ended = {
        token_hash: `sha256:${'0'.repeat(64)}`,
        description: 'former',
        not_after: '2020-01-01T00:00:00Z',
      };
      section(config, 'admin', 'bearer_token')['tokens'] = [...(Array.isArray(tokens) ? tokens : []), ended];
    },
  });
});
afterAll(() => estuary.stop());

const tlsOf = (name: string | undefined): ClientTls => {
  const person = name === undefined ? undefined : people.get(name);
  if (person === undefined) return { ca: estuary.root };
  return { ca: estuary.root, cert: encodePem('CERTIFICATE', person.der), key: pkcs8Pem(person.keys) };
};
/** A call over a new connection. */
const as = (
  name: string | undefined,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> => call({ port: estuary.server.port('admin'), method, path, headers, tls: tlsOf(name) });
const status = async (...args: Parameters<typeof as>): Promise<number> => (await as(...args)).status;

describe('roles by certificate, over TLS', () => {
  test.each([
    ['ra', [200, 200, 403, 403, 200]],
    ['auditor', [403, 200, 200, 403, 200]],
    ['operator', [403, 403, 403, 200, 200]],
    ['nobody', [403, 403, 403, 403, 200]],
  ])('%s: otp, certificates, audit, lockouts, session', async (name, expected) => {
    const paths = ['otp', 'certificates', 'audit', 'lockouts', 'session'];
    expect(await Promise.all(paths.map((path) => status(name, 'GET', `/admin/${path}`)))).toEqual(expected);
  });

  test('a bearer token that has ended is a warning at the start', async () => {
    const warning = await untilLogged(estuary.server, { key: 'admin.bearer_token.tokens[1].not_after' });
    expect(warning['msg']).toMatch(/^has passed: the token of "former" has expired/);
  });
});

describe('sessions', () => {
  const ownPage = () => ({
    Origin: `https://localhost:${estuary.server.port('admin')}`,
    Host: `localhost:${estuary.server.port('admin')}`,
  });
  const manyTimes = <T>(one: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: 12 }, one));

  test.each([
    ['a certificate', 'ra'],
    ['a bearer token', undefined],
  ])('signed in with %s, a browser is known on all connections until it signs out', async (_, name) => {
    const credentials: Record<string, string> =
      name === undefined ? { Authorization: `Bearer ${estuary.adminToken}` } : {};
    const signedIn = await as(name, 'POST', '/admin/session', { ...ownPage(), ...credentials });
    expect(signedIn.status).toBe(201);
    const cookie = { ...ownPage(), Cookie: signedIn.headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
    expect(new Set(await manyTimes(() => status(name, 'GET', '/admin/otp', cookie)))).toEqual(new Set([200]));
    if (name !== undefined) expect(await status('auditor', 'GET', '/admin/session', cookie)).toBe(401);
    expect(await status(name, 'DELETE', '/admin/session', cookie)).toBe(204);
    expect(new Set(await manyTimes(() => status(name, 'GET', '/admin/otp', cookie)))).toEqual(new Set([401]));
  });
});

describe('events', () => {
  test('come to a listener', async () => {
    const agent = new Agent({ keepAlive: false });
    const heard = new Promise<string>((resolve, reject) => {
      const stream = request(
        {
          host: '127.0.0.1',
          servername: 'localhost',
          port: estuary.server.port('admin'),
          path: '/admin/events',
          agent,
          ...tlsOf('auditor'),
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (part: string) => {
            text += part;
            if (text.includes('otp.created') && text.includes('config.reload')) {
              stream.destroy();
              resolve(text);
            }
          });
          response.on('error', () => undefined);
          void estuary
            .admin('POST', '/admin/otp', { client_id: 'dev-1' })
            .then(() => estuary.admin('POST', '/admin/reload'))
            .catch(reject);
        },
      );
      stream.on('error', reject).end();
    });
    expect(await heard).toMatch(/event: audit\nid: \d+\ndata: \{.*"type":"otp\.created"/);
  });
});
