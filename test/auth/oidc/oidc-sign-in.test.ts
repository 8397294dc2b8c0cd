/** `[admin.oidc]`: who signs in at an OpenID provider, with which claims, and when the provider is to blame (docs/guides/oidc.md). */
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { OidcSignIn, type OidcClaims } from '../../../src/auth/oidc/oidc-sign-in.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../../support/certificates.ts';
import { oidcSettings } from './support.ts';

type Claims = Readonly<Record<string, unknown>>;
interface Reply {
  readonly status?: number;
  readonly json?: Claims;
}

const { privateKey, publicKey } = await generateKeyPair('ES256');
const ca = await makeCa('CN=Provider CA');
let server: Server;
let issuer: string;
let oidc: OidcSignIn;
let now: number;
/** By path; other paths answer 404. */
let replies: Record<string, Reply>;
let requests: string[];
let held: Promise<void> | undefined;
/** To the token endpoint. */
let sent: { readonly authorization: string | undefined; readonly body: string }[];

const METADATA = '/.well-known/openid-configuration';

beforeAll(async () => {
  const { der, keys } = await makeClient('CN=provider', ca, { extensions: [subjectAltName(dns('localhost'))] });
  const key = keys.privateKey.export({ format: 'pem', type: 'pkcs8' });
  server = createServer({ cert: encodePem('CERTIFICATE', der), key }, (request, response) => {
    const { url = '', headers } = request;
    requests.push(url);
    if (url === '/token') void text(request).then((body) => sent.push({ authorization: headers.authorization, body }));
    const { status = 200, json } = replies[url] ?? { status: 404 };
    void Promise.resolve(held).then(() => {
      response.writeHead(status, json && { 'Content-Type': 'application/json' }).end(json && JSON.stringify(json));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `https://localhost:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

beforeEach(async () => {
  [now, requests, held, sent] = [0, [], undefined, []];
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    userinfo_endpoint: `${issuer}/userinfo`,
    id_token_signing_alg_values_supported: ['ES256'],
  };
  replies = {
    [METADATA]: { json: metadata },
    '/jwks': { json: { keys: [await exportJWK(publicKey)] } },
    '/userinfo': { json: { sub: 'ada', name: 'Ada of userinfo', groups: ['of userinfo'] } },
  };
  oidc = new OidcSignIn(
    oidcSettings({ issuer, client_id: 'estuary', ca: encodePem('CERTIFICATE', ca.der) }),
    () => now,
  );
});

interface Attempt {
  readonly claims?: Claims;
  /** Milliseconds until the browser comes back. */
  readonly later?: number;
  readonly token?: Reply;
}

async function signIn({ claims = {}, later = 0, token }: Attempt = {}): Promise<OidcClaims> {
  const { url, sealed } = await oidc.begin();
  const { searchParams } = new URL(url);
  const all = { iss: issuer, aud: 'estuary', sub: 'ada', nonce: searchParams.get('nonce'), ...claims };
  const jwt = new SignJWT(all).setProtectedHeader({ alg: 'ES256' }).setIssuedAt().setExpirationTime('1m');
  const json = { access_token: 'a', token_type: 'bearer', id_token: await jwt.sign(privateKey) };
  replies['/token'] = token ?? { json };
  now += later;
  return oidc.complete(`?code=c&state=${searchParams.get('state') ?? ''}`, sealed);
}

test('claims of the ID token count; userinfo is asked only for one that is missing', async () => {
  expect(await signIn({ claims: { name: 'Ada', groups: ['a', 'b'] } })).toEqual({
    issuer,
    subject: 'ada',
    name: 'Ada',
    values: ['a', 'b'],
  });
  expect(requests).not.toContain('/userinfo');
  expect(await signIn({ claims: { name: 'Ada' } })).toMatchObject({ name: 'Ada', values: ['of userinfo'] });
  expect(await signIn({ claims: { groups: 'a' } })).toMatchObject({ name: 'Ada of userinfo', values: ['a'] });
});

test('a provider without userinfo leaves missing claims empty', async () => {
  replies[METADATA] = { json: { ...replies[METADATA]?.json, userinfo_endpoint: undefined } };
  expect(await signIn()).toMatchObject({ name: undefined, values: [] });
});

test('only texts are a name or a value of the roles claim', async () => {
  expect(await signIn({ claims: { name: 7, groups: ['a', 7, {}, null] } })).toMatchObject({
    name: undefined,
    values: ['a'],
  });
});

test('the browser has ten minutes, and brings back what it got', async () => {
  await signIn({ later: 599_999 });
  await expect(signIn({ later: 600_000 })).rejects.toMatchObject({ code: 'OIDC_FAILED' });
  for (const sealed of [undefined, '', 'AAAA'])
    expect(() => oidc.complete('?code=c', sealed)).toThrow(expect.objectContaining({ code: 'OIDC_FAILED' }));
});

test('the metadata of the provider is read again after ten minutes, or once the clock was set back', async () => {
  const reads = async (at: number): Promise<number> => {
    now = at;
    await oidc.begin();
    return requests.filter((url) => url === METADATA).length;
  };
  expect(await reads(0)).toBe(1);
  expect(await reads(599_999)).toBe(1);
  expect(await reads(600_000)).toBe(2);
  expect(await reads(0)).toBe(3);
});

test('metadata that could not be read is read again at the next sign-in', async () => {
  const good = replies[METADATA];
  replies[METADATA] = { status: 500 };
  await expect(oidc.begin()).rejects.toMatchObject({ code: 'OIDC_UNAVAILABLE' });
  replies[METADATA] = good ?? {};
  await oidc.begin();
});

test('32 sign-ins wait for the provider; one more is rejected until they are done', async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  held = promise.then(() => undefined);
  const waiting = Array.from({ length: 32 }, () => oidc.begin());
  await expect(oidc.begin()).rejects.toMatchObject({
    code: 'OIDC_UNAVAILABLE',
    detail: '32 sign-ins wait for the provider',
  });
  resolve(undefined);
  await Promise.all(waiting);
  await oidc.begin();
});

test.each([
  [
    {
      status: 401,
      json: { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret provided.' },
    },
    'OIDC_REJECTED',
  ],
  [
    {
      status: 401,
      json: { error: 'unauthorized_client', error_description: 'Invalid client or Invalid client credentials' },
    },
    'OIDC_REJECTED',
  ],
  [{ status: 500 }, 'OIDC_UNAVAILABLE'],
  [{ status: 400, json: { error: 'invalid_grant', error_description: 'Code not valid' } }, 'OIDC_FAILED'],
  [{ status: 404 }, 'OIDC_FAILED'],
  [{ json: { access_token: 'a', token_type: 'bearer' } }, 'OIDC_FAILED'],
])('the provider answers a code with %j: %s', async (token, code) => {
  await expect(signIn({ token })).rejects.toMatchObject({ code });
});

test('an issuer may end with a slash; another one than the provider has is in the detail', async () => {
  const path = `${issuer}/o/estuary`;
  replies['/o/estuary/.well-known/openid-configuration'] = { json: { ...replies[METADATA]?.json, issuer: `${path}/` } };
  oidc = new OidcSignIn({ ...oidc.settings, issuer: `${path}/` }, () => now);
  expect(await signIn({ claims: { iss: `${path}/`, name: 'Ada', groups: 'a' } })).toMatchObject({ values: ['a'] });
  await expect(signIn({ claims: { iss: path } })).rejects.toMatchObject({
    detail: expect.stringContaining(`iss is "${path}" and should be "${path}/"`) as string,
  });
  oidc = new OidcSignIn({ ...oidc.settings, issuer: path }, () => now);
  await expect(oidc.begin()).rejects.toMatchObject({
    detail: expect.stringContaining(`issuer is "${path}/" and should be "${path}"`) as string,
  });
});

test('the error of the provider and its description are in the detail, cut', async () => {
  const json = { error: 'invalid_grant', error_description: `expired ${'x'.repeat(600)}` };
  await expect(signIn({ token: { status: 400, json } })).rejects.toMatchObject({
    detail: expect.stringMatching(/invalid_grant: expired x{492}… \(608 characters\)/) as string,
  });
});

test('roles are a path where no claim has that name, and may be objects', async () => {
  const of = async (roles_claim: string, claims: Claims): Promise<readonly string[]> => {
    oidc = new OidcSignIn({ ...oidc.settings, roles_claim }, () => now);
    return (await signIn({ claims: { name: 'Ada', ...claims } })).values;
  };
  expect(await of('realm_access.roles', { realm_access: { roles: ['a', 'b'] } })).toEqual(['a', 'b']);
  expect(await of('a.b', { 'a.b': 'whole', a: { b: 'path' } })).toEqual(['whole']);
  expect(await of('constructor.name', {})).toEqual([]);
  expect(await of('roles', { roles: [{ name: 'a' }, { value: 'b' }, { name: 7 }, 'c'] })).toEqual(['a', 'b', 'c']);
});

/** What these providers send according to their documents and public reports. */
const PROVIDERS: readonly [string, string, claims: Claims, userinfo: Claims, values: readonly string[]][] = [
  [
    'Keycloak',
    'realm_access.roles',
    { typ: 'ID', azp: 'estuary', acr: '1', sid: 's', preferred_username: 'ada', email_verified: false },
    { preferred_username: 'ada', realm_access: { roles: ['default-roles-lab', 'pki-team'] } },
    ['default-roles-lab', 'pki-team'],
  ],
  [
    'Keycloak with an audience mapper',
    'groups',
    { aud: ['estuary', 'account'], azp: 'estuary', groups: ['/pki-team'] },
    {},
    ['/pki-team'],
  ],
  [
    'Entra ID',
    'roles',
    {
      ver: '2.0',
      tid: 't',
      oid: 'o',
      rh: '0.A',
      uti: 'u',
      preferred_username: 'ada@corp.example',
      roles: ['pki-team'],
    },
    {},
    ['pki-team'],
  ],
  ['Auth0', 'https://corp.example/roles', { sid: 's', 'https://corp.example/roles': ['pki-team'] }, {}, ['pki-team']],
  ['AD FS', 'group', { upn: 'ada@corp.example', group: 'pki-team', auth_time: 1, sid: 'S-1-5-21' }, {}, ['pki-team']],
  ['GitLab', 'groups', { groups_direct: ['x'] }, { groups: ['corp/pki-team'] }, ['corp/pki-team']],
];
test.each(PROVIDERS)('%s: %s', async (_, roles_claim, claims, userinfo, values) => {
  replies['/userinfo'] = { json: { sub: 'ada', ...userinfo } };
  oidc = new OidcSignIn({ ...oidc.settings, roles_claim }, () => now);
  expect(await signIn({ claims: { name: 'Ada', ...claims } })).toMatchObject({ name: 'Ada', values });
});

test('a failing userinfo endpoint stops a sign-in only if the roles are missing', async () => {
  replies['/userinfo'] = { status: 403 };
  expect(await signIn({ claims: { groups: 'a' } })).toMatchObject({ name: undefined, values: ['a'] });
  await expect(signIn({ claims: { name: 'Ada' } })).rejects.toMatchObject({ code: 'OIDC_FAILED' });
});

test('OpenID Connect Core §5.6.2: a claim that was left out for its size is named', async () => {
  expect(await signIn({ claims: { name: 'Ada', _claim_names: { groups: 'src1' } } })).toMatchObject({
    omitted: 'groups',
  });
});

test.each([
  [undefined, undefined, 'basic'],
  [undefined, ['client_secret_basic', 'client_secret_post'], 'basic'],
  [undefined, ['client_secret_post'], 'post'],
  ['client_secret_post', ['client_secret_basic'], 'post'],
  ['client_secret_basic', ['client_secret_post'], 'basic'],
] as const)('with %s and an offer of %s the secret is sent by %s', async (configured, offered, expected) => {
  const secret = 'a-._~ä &';
  replies[METADATA] = { json: { ...replies[METADATA]?.json, token_endpoint_auth_methods_supported: offered } };
  const way = configured === undefined ? {} : { token_endpoint_auth_method: configured };
  oidc = new OidcSignIn({ ...oidc.settings, ...way, client_secret: { reveal: () => Buffer.from(secret) } }, () => now);
  await signIn({ claims: { name: 'Ada', groups: 'a' } });
  const { authorization = '', body = '' } = sent.at(-1) ?? {};
  const basic = `Basic ${Buffer.from('estuary:a-._~%C3%A4+%26').toString('base64')}`;
  if (expected === 'basic') expect([authorization, body.includes('client_secret')]).toEqual([basic, false]);
  else expect([authorization, new URLSearchParams(body).get('client_secret')]).toEqual(['', secret]);
});

test('the detail of a rejection names the causes', async () => {
  await expect(signIn({ token: { status: 204 } })).rejects.toMatchObject({
    detail: expect.stringContaining('unexpected HTTP response status code') as string,
  });
});

const nested = ['a', 'b', 'c', 'd', 'e'].reduceRight<Error | undefined>(
  (cause, text) => new Error(text, { cause }),
  undefined,
);

test.each([
  ['up to four causes of an error', nested, 'a: b: c: d'],
  ['what is no error', 'a text', 'a text'],
])('the detail of a rejection has %s', async (_, reason, detail) => {
  const reveal = (): Buffer => {
    AbortSignal.abort(reason).throwIfAborted();
    return Buffer.alloc(0);
  };
  oidc = new OidcSignIn({ ...oidc.settings, client_secret: { reveal } });
  await expect(oidc.begin()).rejects.toMatchObject({ code: 'OIDC_FAILED', detail });
});
