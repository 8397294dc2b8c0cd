/** `[auth.jwt]` on the built server, with the tokens and keys of oidc-provider. */
import { createHmac, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatName, parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { buildCsr, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatesOf, Estuary, itemsOf, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { approve } from '../support/queued-requests.ts';
import { AUDIENCE, TokenIssuer } from '../support/token-issuer.ts';

const INVALID = '401 invalid bearer token';
const UNAVAILABLE = '503 The keys of the token issuer are temporarily unavailable. Try again later.';

let issuer: TokenIssuer;
let estuary: Estuary;
const key = makeKey();

beforeAll(async () => {
  issuer = await TokenIssuer.start(['device-1', 'device-2']);
  estuary = await start({ required_claims: ['aud', 'sub'] });
});
afterAll(async () => {
  await estuary.stop();
  await issuer.stop();
});
afterEach(async () => {
  await estuary.admin('DELETE', '/admin/lockouts/address:127.0.0.1');
});

function start(settings: Record<string, string | number | boolean | string[]>): Promise<Estuary> {
  return Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'idp-ca.pem'), issuer.ca);
      Object.assign(section(config, 'auth', 'jwt'), {
        issuer: issuer.url,
        audience: AUDIENCE,
        jwks_url: issuer.jwksUrl,
        trust_anchors: 'idp-ca.pem',
        algorithms: ['ES256', 'RS256'],
        clock_tolerance: 60,
        ...settings,
      });
      section(caSection(config), 'profile')['subject'] = { patterns: { CN: '{id}', OU: 'Hall {jwt.hall}' } };
      section(caSection(config, 1), 'auth')['methods'] = ['mtls', 'otp'];
      config['label'] = [
        { name: 'by-hand', ca: 'devices', approval: 'manual', auth: { methods: ['jwt'] }, profile: {} },
      ];
    },
  });
}

function enroll(token: string, cn = 'device-1', path = 'simpleenroll', server = estuary): Promise<Answer> {
  return server.enroll(onTheWire(simpleCsr(key, cn)), { headers: { Authorization: `Bearer ${token}` }, path });
}
const inShort = ({ status, text }: Answer): string => `${status} ${text}`.trim();
const inSeconds = (offset: number): number => Math.floor(Date.now() / 1000) + offset;

test('an access token enrolls as its subject, and is audited without the token', async () => {
  const token = await issuer.token('device-1');
  const answer = await enroll(token);
  expect(inShort(answer)).toMatch(/^200/);
  const [der] = certificatesOf(answer);
  expect(der && formatName(parseCertificate(der).subject)).toBe('CN=device-1');
  const { json } = await estuary.admin('GET', '/admin/audit?type=auth.jwt');
  expect(itemsOf(json)[0]).toMatchObject({ outcome: 'success', subject: 'device-1', method: 'jwt' });
  expect(JSON.stringify(json)).not.toContain(token);
});

test('the names are bound to the subject', async () => {
  expect(inShort(await enroll(await issuer.token('device-1'), 'device-2'))).toBe(
    '403 The CSR does not name the client that authenticates.',
  );
});

test('Bearer is offered after Basic, at labels that accept tokens', async () => {
  const offered = async (path: string): Promise<unknown> =>
    (await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { path })).headers['www-authenticate'];
  expect(await offered('simpleenroll')).toBe('Basic realm="est", Bearer realm="est"');
  expect(await offered('lab/simpleenroll')).toBe('Basic realm="est"');
  const refused = await enroll('nonsense');
  expect(refused.headers['www-authenticate']).toBe('Basic realm="est", Bearer realm="est", error="invalid_token"');
});

test('a label without the method ignores tokens', async () => {
  expect(inShort(await enroll(await issuer.token('device-1'), 'device-1', 'lab/simpleenroll'))).toBe('401');
});

// First of those that make the server read the keys again.
test('after a rotation, the unknown key is fetched, once a minute at most', async () => {
  const before = await issuer.token('device-1');
  expect((await enroll(before)).status).toBe(200);
  await issuer.rotate();
  const fetched = issuer.jwksRequests;
  expect((await enroll(await issuer.token('device-1'))).status).toBe(200);
  expect(inShort(await enroll(before))).toBe(INVALID);
  expect(inShort(await enroll(await issuer.signed({}, { kid: 'unknown' })))).toBe(INVALID);
  expect(issuer.jwksRequests).toBe(fetched + 1);
});

describe('refused', () => {
  const unsigned = (header: object, claims: object): string =>
    [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const claims = () => ({ iss: issuer.url, aud: AUDIENCE, sub: 'device-1', exp: inSeconds(600) });

  test.each<[string, () => Promise<string> | string]>([
    ['expired', () => issuer.signed({ exp: inSeconds(-600) })],
    ['without exp', () => issuer.signed({ exp: undefined })],
    ['not yet valid', () => issuer.signed({ nbf: inSeconds(600) })],
    ['for another audience', () => issuer.signed({ aud: 'https://other.example' })],
    ['without aud', () => issuer.signed({ aud: undefined })],
    ['of another issuer', () => issuer.signed({ iss: 'https://evil.example' })],
    ['without a subject', () => issuer.signed({ sub: undefined })],
    ['with a control character in the subject', () => issuer.signed({ sub: 'device-1\n' })],
    ['with a lone surrogate in the subject', () => issuer.signed({ sub: 'device-1\ud800' })],
    ['alg none', () => `${unsigned({ alg: 'none' }, claims())}.`],
    [
      'signed by a key that is not in the JWKS',
      async () => {
        const { privateKey } = await generateKeyPair('ES256');
        return new SignJWT(claims()).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
      },
    ],
    [
      'with the key of the attacker in the header',
      async () => {
        const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
        return new SignJWT(claims())
          .setProtectedHeader({ alg: 'ES256', jwk: await exportJWK(publicKey) })
          .sign(privateKey);
      },
    ],
    [
      'HMAC with a public key',
      async () => {
        const { publicKey } = await generateKeyPair('ES256', { extractable: true });
        const text = unsigned({ alg: 'HS256' }, claims());
        return `${text}.${createHmac('sha256', await exportSPKI(publicKey))
          .update(text)
          .digest('base64url')}`;
      },
    ],
    [
      'of an algorithm that is not listed',
      async () => {
        const { privateKey } = await generateKeyPair('PS256');
        return new SignJWT(claims()).setProtectedHeader({ alg: 'PS256' }).sign(privateKey);
      },
    ],
    [
      'changed',
      async () => {
        const [header = '', , signature = ''] = (await issuer.token('device-1')).split('.');
        return [
          header,
          Buffer.from(JSON.stringify({ ...claims(), sub: 'device-2' })).toString('base64url'),
          signature,
        ].join('.');
      },
    ],
    ['too long', () => issuer.signed({ more: 'x'.repeat(20_000) })],
    ['empty', () => ''],
  ])('%s', async (_, make) => {
    expect(inShort(await enroll(await make()))).toBe(INVALID);
  });

  test('within the tolerance of the clock, exp and nbf are met', async () => {
    expect((await enroll(await issuer.signed({ exp: inSeconds(-2), nbf: inSeconds(2) }))).status).toBe(200);
  });

  test('failures count toward the lockout', async () => {
    for (let i = 0; i < 6; i++) expect(inShort(await enroll('nonsense'))).toBe(INVALID);
    expect(inShort(await enroll(await issuer.token('device-1')))).toBe('401 too many failures, locked out');
  });
});

test('claims are placeholders', async () => {
  const csr = (ou: string): string =>
    onTheWire(buildCsr(key, { subject: parseDistinguishedName(`CN=device-1,OU=${ou}`).der }));
  const headers = { Authorization: `Bearer ${await issuer.token('device-1')}` };
  expect((await estuary.enroll(csr('Hall 7'), { headers })).status).toBe(200);
  expect((await estuary.enroll(csr('Hall 8'), { headers })).status).toBe(400);
});

test('a queued request is polled with another token of the same subject', async () => {
  const poll = async (client: string): Promise<number> =>
    (await enroll(await issuer.token(client), 'device-1', 'by-hand/simpleenroll')).status;
  expect(await poll('device-1')).toBe(202);
  expect(await poll('device-2')).toBe(403);
  await approve(estuary, 'device-1');
  expect(await poll('device-1')).toBe(200);
});

describe('single_use', () => {
  let single: Estuary;
  beforeAll(async () => {
    single = await start({ single_use: true });
  });
  afterAll(() => single.stop());
  const withId = (jti: string | undefined = randomUUID()): Promise<string> => issuer.signed({ jti });
  const send = (token: string, cn = 'device-1', path = 'simpleenroll'): Promise<Answer> =>
    enroll(token, cn, path, single);

  test('a jti counts once, for one certificate, also after a restart', async () => {
    const token = await withId();
    expect((await send(token)).status).toBe(200);
    expect(inShort(await send(token))).toBe(INVALID);
    await single.server.stop();
    await single.restart();
    expect(inShort(await send(token))).toBe(INVALID);
    expect((await send(await withId())).status).toBe(200);
  });

  test('of concurrent requests with one jti, one gets a certificate', async () => {
    const token = await withId();
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        single.enroll(onTheWire(simpleCsr(makeKey(), 'device-1')), { headers: { Authorization: `Bearer ${token}` } }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401]);
    await single.admin('DELETE', '/admin/lockouts/address:127.0.0.1');
  });

  test('a refused request does not use up the token', async () => {
    const token = await withId();
    expect((await send(token, 'device-2')).status).toBe(403);
    expect((await send(token)).status).toBe(200);
  });

  test('the same token polls the request that it was used for, and nothing else', async () => {
    const token = await withId();
    expect((await send(token, 'device-1', 'by-hand/simpleenroll')).status).toBe(202);
    expect((await send(token, 'device-1', 'by-hand/simpleenroll')).status).toBe(202);
    expect(inShort(await send(token))).toBe(INVALID);
    await approve(single, 'device-1');
    expect((await send(token, 'device-1', 'by-hand/simpleenroll')).status).toBe(200);
  });

  test('a token without a jti is refused, and so is the jti of another subject', async () => {
    expect(inShort(await send(await issuer.signed({})))).toBe(INVALID);
    const jti = randomUUID();
    expect((await send(await withId(jti))).status).toBe(200);
    expect(inShort(await send(await issuer.signed({ jti, sub: 'device-2' }), 'device-2'))).toBe(INVALID);
  });

  test('such tokens are not among the one-time passwords', async () => {
    const { json } = await single.admin('GET', '/admin/otp');
    expect(itemsOf(json)).toEqual([]);
  });
});

describe('an issuer that does not answer', () => {
  let fresh: Estuary;
  beforeAll(async () => {
    fresh = await start({});
  });
  afterAll(() => fresh.stop());
  afterEach(() => {
    issuer.jwksAnswer = undefined;
  });
  const send = (token: string): Promise<Answer> => enroll(token, 'device-1', 'simpleenroll', fresh);

  test('delays nobody else, and lets nobody in; a redirect is not followed', async () => {
    const waiting: (() => void)[] = [];
    issuer.jwksAnswer = (_request, response) => waiting.push(() => response.destroy());
    const token = await issuer.token('device-1');
    const sent = Array.from({ length: 40 }, () => send(token));
    await expect.poll(() => waiting.length).toBeGreaterThanOrEqual(1);
    const { token: password } = await fresh.otp({ client_id: 'device-1' });
    const other = await fresh.enroll(onTheWire(simpleCsr(key, 'device-1')), { password, path: 'lab/simpleenroll' });
    expect(other.status).toBe(200);
    issuer.jwksAnswer = (_request, response) => response.writeHead(302, { Location: `${issuer.url}/jwks?again` }).end();
    for (const end of waiting) end();
    expect(new Set((await Promise.all(sent)).map(({ status }) => status))).toEqual(new Set([503]));
    expect(inShort(await send(token))).toBe(UNAVAILABLE);
    issuer.jwksAnswer = undefined;
    expect((await send(token)).status).toBe(200);
  });

  test('keys that are known go on working', async () => {
    const token = await issuer.token('device-1');
    expect((await send(token)).status).toBe(200);
    issuer.jwksAnswer = (_request, response) => response.writeHead(500).end();
    expect((await send(token)).status).toBe(200);
    const unknown = await send(await issuer.signed({}, { kid: 'unknown' }));
    expect(inShort(unknown)).toBe(UNAVAILABLE);
  });
});
