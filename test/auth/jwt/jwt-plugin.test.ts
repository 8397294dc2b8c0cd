/** `[auth.jwt]`: which tokens authenticate a client, and under which name (RFC 7519; docs/guides/jwt.md). */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, expect, test } from 'vitest';
import { GuardedAttempts } from '../../../src/auth/guarded-attempts.ts';
import type { JwtIdentity } from '../../../src/auth/identity.ts';
import { IssuerKeys } from '../../../src/auth/jwt/issuer-keys.ts';
import { JwtPlugin } from '../../../src/auth/jwt/jwt-plugin.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { setUpOtp, takeUse, type OtpSetup } from '../otp/support.ts';
import { T0 } from '../../store/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';

type Settings = ConstructorParameters<typeof JwtPlugin>[0]['settings'];

const folder = temporaryFolder();
afterAll(folder.remove);
const { privateKey, publicKey } = await generateKeyPair('ES256');
type Claims = Readonly<Record<string, unknown>>;
const SECONDS = T0 / 1000;
const CLAIMS: Claims = {
  iss: 'https://idp.example',
  aud: 'est',
  sub: 'device-1',
  exp: SECONDS + 60,
  iat: SECONDS,
  jti: 'one',
};
const SETTINGS: Settings = {
  issuer: 'https://idp.example',
  audience: ['est'],
  algorithms: ['ES256'],
  clock_tolerance: 5,
  subject_claim: 'sub',
  required_claims: [],
  single_use: false,
  bind: 'cn',
};

const signed = (changes: Claims = {}): Promise<string> =>
  new SignJWT({ ...CLAIMS, ...changes }).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);

async function setUp(changes: Partial<Settings> = {}, otp?: OtpSetup) {
  const { store, clock, service } = otp ?? (await setUpOtp());
  const attempts = new GuardedAttempts({ method: 'jwt', lockout: service.lockout, tokenLength: 20, retryAfter: 7 });
  const keys = { find: () => Promise.resolve(publicKey), renewed: () => Promise.resolve(false) };
  const plugin = new JwtPlugin({ settings: { ...SETTINGS, ...changes }, keys, attempts, store });
  const context = { operation: 'simpleenroll', caLabel: 'devices', certificateOnly: false, expiredGraceSeconds: 0 };
  // Each attempt from another address, so that none is locked out.
  const send = (authorization: string): Promise<JwtIdentity | undefined> =>
    plugin.authenticate(
      { authorization, address: randomUUID(), peerCertificate: undefined, peerIntermediates: [] },
      { ...context, now: clock.now },
    );
  /** The client_id, or the reason in the audit log. */
  const outcome = async (claims: Claims = {}): Promise<string | undefined> =>
    send(`Bearer ${await signed(claims)}`).then(
      (identity) => identity?.client_id,
      (error: unknown) => (error instanceof EstuaryError ? error.detail : String(error)),
    );
  return { store, clock, service, send, outcome };
}

test('single_use: a jti belongs to the first subject that presents it, and counts once', async () => {
  const { store, clock, send, outcome } = await setUp({ single_use: true });
  const usable = async (): Promise<unknown> => {
    const identity = await send(`Bearer ${await signed()}`);
    return [identity?.token?.usable, identity?.token?.dead];
  };
  expect(await usable()).toEqual([true, undefined]);
  expect(await outcome({ sub: 'device-2' })).toBe('the "jti" belongs to a token of another subject');
  const id = (await send(`Bearer ${await signed()}`))?.token?.otp_id ?? '';
  expect((await store.getOtp(id))?.expires_at).toBe(T0 + 66_000);
  await takeUse(store, id, clock);
  expect(await usable()).toEqual([false, undefined]);
  await store.revokeOtp(id, clock.now, []);
  expect(await usable()).toEqual([false, 'is revoked']);
});

test('single_use: a revoked jti is dead although its use is left', async () => {
  const { store, clock, send, service } = await setUp({ single_use: true });
  const id = (await send(`Bearer ${await signed()}`))?.token?.otp_id ?? '';
  await store.revokeOtp(id, clock.now, []);
  const identity = await send(`Bearer ${await signed()}`);
  expect(identity?.token).toMatchObject({ usable: false, dead: 'is revoked' });
  if (identity === undefined) return;
  const attempt = { address: '192.0.2.1', caLabel: 'devices', now: clock.now };
  await expect(service.refuseUnusable(identity, attempt)).rejects.toMatchObject({ code: 'JWT_INVALID' });
});

test('single_use: a fraction of a second is rounded up, and a time has at most four digits of a year', async () => {
  const { store, send, outcome } = await setUp({ single_use: true, clock_tolerance: 600 });
  const expiry = async (jti: string, exp: number): Promise<number | undefined> => {
    const id = (await send(`Bearer ${await signed({ jti, exp })}`))?.token?.otp_id ?? '';
    return (await store.getOtp(id))?.expires_at;
  };
  expect(await expiry('fraction', SECONDS + 60.123456)).toBe(T0 + 661_124);
  expect(await expiry('last', 253_402_300_799.5)).toBe(253_402_300_799_999);
  for (const exp of [253_402_300_800, 1e18, Number.MAX_VALUE])
    expect(await outcome({ exp }), String(exp)).toBe('the claim "exp" is beyond year 9999');
  expect(await outcome({ iat: 1e18 })).toBe('the claim "iat" is beyond year 9999');
});

test('RFC 7517 §4.5: a kid is optional, and each key that fits is tried', async () => {
  const { service, store, clock } = await setUpOtp();
  const file = folder.file('jwks.json');
  const others = await Promise.all([1, 2, 3].map(() => generateKeyPair('ES256', { extractable: true })));
  const publish = async (kid: string | undefined, keys: readonly CryptoKey[], use?: string): Promise<void> =>
    writeFileSync(
      file,
      // Kubernetes and others serve a byte order mark.
      `\ufeff${JSON.stringify({ keys: await Promise.all(keys.map(async (key) => ({ ...(await exportJWK(key)), kid, use }))) })}`,
    );
  let now = clock.now;
  const attempts = new GuardedAttempts({ method: 'jwt', lockout: service.lockout, tokenLength: 20, retryAfter: 7 });
  const plugin = new JwtPlugin({
    settings: SETTINGS,
    keys: new IssuerKeys({ source: { file }, retryAfter: 7, now: () => now }),
    attempts,
    store,
  });
  const context = { operation: 'simpleenroll', caLabel: 'devices', certificateOnly: false, expiredGraceSeconds: 0 };
  const signedBy = async (n: number, kid?: string): Promise<string | undefined> => {
    const header = { alg: 'ES256', ...(kid === undefined ? {} : { kid }) };
    const key = others[n]?.privateKey;
    if (key === undefined) throw new Error('no such key');
    const authorization = `Bearer ${await new SignJWT(CLAIMS).setProtectedHeader(header).sign(key)}`;
    const presented = { authorization, address: randomUUID(), peerCertificate: undefined, peerIntermediates: [] };
    return plugin.authenticate(presented, { ...context, now: clock.now }).then(
      (identity) => identity?.client_id,
      (error: unknown) => (error instanceof EstuaryError ? error.detail : String(error)),
    );
  };
  const keysOf = (...numbers: readonly number[]) =>
    others.filter((_, n) => numbers.includes(n)).map((pair) => pair.publicKey);
  await publish(undefined, keysOf(0, 1));
  expect([await signedBy(0), await signedBy(1)]).toEqual(['device-1', 'device-1']);
  expect(await signedBy(2)).toBe('signature verification failed');
  // A rotated key without a kid is looked for as an unknown kid is, once a minute.
  await publish(undefined, keysOf(2));
  expect(await signedBy(2)).toBe('signature verification failed');
  now += 60_000;
  expect(await signedBy(2)).toBe('device-1');
  // A token may name a key that is published without a name.
  expect(await signedBy(2, 'unpublished')).toBe('device-1');
  now += 60_000;
  await publish(undefined, keysOf(0, 1));
  expect(await signedBy(1, 'unpublished')).toBe('device-1');
  now += 60_000;
  await publish('same', keysOf(0, 1));
  expect(await signedBy(1, 'same')).toBe('device-1');
  expect(await signedBy(2, 'same')).toBe('signature verification failed');
  now += 60_000;
  await publish('svid', keysOf(1), 'jwt-svid');
  expect(await signedBy(1, 'svid')).toBe('device-1');
  now += 60_000;
  await publish('x509', keysOf(1), 'x509-svid');
  expect(await signedBy(1, 'x509')).toBe('no applicable key found in the JSON Web Key Set');
});

const TOKENS: readonly [what: string, Partial<Settings>, Claims, outcome: string][] = [
  ['single_use: without a jti', { single_use: true }, { jti: undefined }, 'missing required "jti" claim'],
  ['single_use: an unusable jti', { single_use: true }, { jti: 'a\n' }, 'the claim "jti" is not a usable text'],
  ['without single_use, a jti is not needed', {}, { jti: undefined }, 'device-1'],
  ['without max_age, iat is not needed', {}, { iat: undefined }, 'device-1'],
  ['max_age is kept, with the tolerance', { max_age: 100 }, { iat: SECONDS - 105 }, 'device-1'],
  [
    'max_age is exceeded',
    { max_age: 100 },
    { iat: SECONDS - 106 },
    '"iat" claim timestamp check failed (too far in the past)',
  ],
  ['a subject of 256 characters', {}, { sub: 'x'.repeat(256) }, 'x'.repeat(256)],
  ['a subject of 257 characters', {}, { sub: 'x'.repeat(257) }, 'the claim "sub" is not a usable text'],
  ['a required claim', { required_claims: ['hall'] }, { hall: 7 }, 'device-1'],
  [
    'a required claim is missing',
    { required_claims: ['hall'] },
    {},
    'the claim "hall" is missing or has another value',
  ],
  ['a required value', { required_claims: ['hall=7'] }, { hall: ['6', 7] }, 'device-1'],
  ['a required value with a sign of equality', { required_claims: ['hall=a=b'] }, { hall: 'a=b' }, 'device-1'],
  ['a required value, true', { required_claims: ['admin=true'] }, { admin: true }, 'device-1'],
  ['a word of scope', { required_claims: ['scope=est'] }, { scope: 'openid est profile' }, 'device-1'],
  ['the whole scope', { required_claims: ['scp=a b'] }, { scp: 'a b' }, 'device-1'],
  [
    'a word of another claim',
    { required_claims: ['hall=a'] },
    { hall: 'a b' },
    'the claim "hall" is missing or has another value',
  ],
  ['another value', { required_claims: ['hall=7'] }, { hall: '8' }, 'the claim "hall" is missing or has another value'],
  [
    'an object is no value',
    { required_claims: ['hall=[object Object]'] },
    { hall: {} },
    'the claim "hall" is missing or has another value',
  ],
  [
    'a property of every object is no claim',
    { required_claims: ['constructor'] },
    {},
    'the claim "constructor" is missing or has another value',
  ],
];

test('a token is accepted as its subject if it has the required claims', async () => {
  const otp = await setUpOtp();
  for (const [what, settings, claims, expected] of TOKENS)
    expect(await (await setUp(settings, otp)).outcome(claims), what).toBe(expected);
});

test('claims are placeholders: texts, numbers and truth values that are usable', async () => {
  const { send } = await setUp();
  const identity = await send(`Bearer ${await signed({ hall: ['a', 7, true, {}, 'a\n', 'x'.repeat(257)] })}`);
  expect(identity?.attributes.get('hall')).toEqual(['a', '7', 'true']);
});

test('RFC 9110 §11.1: the scheme is recognized in any case and as a whole word, and a long token is rejected', async () => {
  const { send } = await setUp();
  const token = await signed();
  for (const scheme of ['bearer', 'BEARER ', 'Bearer\t'])
    expect((await send(`${scheme} ${token}`))?.client_id).toBe('device-1');
  for (const other of ['Basic abc', `Bearerx ${token}`, `x-bearer ${token}`]) expect(await send(other)).toBeUndefined();
  const padded = async (length: number): Promise<string> => {
    const [without, more] = [(await signed({ more: '' })).length, 'x'.repeat(length)];
    return signed({ more: more.slice(0, Math.floor(((length - without) * 3) / 4)) });
  };
  const longest = await padded(16_384);
  expect(longest.length).toBe(16_384);
  expect((await send(`Bearer ${longest}`))?.client_id).toBe('device-1');
  await expect(send(`Bearer ${await signed({ more: 'x'.repeat(20_000) })}`)).rejects.toMatchObject({
    code: 'JWT_INVALID',
    detail: expect.stringMatching(/^a token of \d+ characters \(at most 16384\)$/) as string,
  });
});
