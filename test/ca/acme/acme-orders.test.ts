/** `driver = "acme"`: accounts, challenges and orders (RFC 8555 §7.3 to §7.5, §8.2) at a server that this test plays. */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { isJson, type Json } from '../../../src/ca/acme/acme-client.ts';
import { AcmeUpstream } from '../../../src/ca/acme/acme-upstream.ts';
import { Unanswered, type UpstreamRequest } from '../../../src/ca/remote/upstream.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { dns, ip as ipAddress, makeCa, makeCertificate, subjectAltName, uri } from '../../support/certificates.ts';
import { startStandIn, type StandIn } from '../../support/est-stand-in.ts';
import { temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
const accountKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const root = await makeCa('CN=ACME Root');
let server: StandIn;
const opened: AcmeUpstream[] = [];

/** What the server is like. */
let acme: {
  accounts: string[];
  hasAccount: boolean;
  /** Statuses of the challenge, one for each look at it; the last one stays. */
  challenge: string[];
  retryAfter?: string;
  error?: object;
  expires: string;
  identifier?: object;
  orderAt?: string;
  isGone?: true;
  /** Fields of answers that are otherwise. */
  order?: object;
  authorization?: object;
  directory?: object;
  certificate?: string;
  revocation?: object;
  /** So many answers of a path fail. */
  fails?: { readonly path: string; readonly status: number; times: number };
  /** The status of a download. */
  refusal?: number;
};
let calls: { readonly path: string; readonly payload: Json; readonly kid: unknown; readonly isRead: boolean }[];
let stored: Map<string, string>;
let logged: string[];

const hookLog = (): string[] => {
  const file = folder.file('hook.log');
  return existsSync(file) ? readFileSync(file, 'latin1').trim().split('\n') : [];
};

beforeAll(async () => {
  const tls = await makeCertificate({
    subject: 'CN=localhost',
    issuer: root,
    extensions: [subjectAltName(dns('localhost'))],
  });
  server = await startStandIn(tls, ({ path, body, response }) => {
    const url = (name: string): string => `${server.url}/${name}`;
    const reply = (status: number, json: object, headers: Readonly<Record<string, string>> = {}) =>
      response
        .writeHead(status, { 'Content-Type': 'application/json', 'Replay-Nonce': 'nonce', ...headers })
        .end(JSON.stringify(json));
    const problem = (type: string) => reply(400, { type: `urn:ietf:params:acme:error:${type}`, detail: 'their text' });
    const names = ['newNonce', 'newAccount', 'newOrder', 'revokeCert'];
    if (path === '/directory')
      return reply(200, { ...Object.fromEntries(names.map((name) => [name, url(name)])), ...acme.directory });
    if (path === '/newNonce') return reply(200, {});
    const { header, payload } = readJws(body);
    calls.push({ path, payload, kid: header['kid'], isRead: isRead(body) });
    const [challenge = 'valid'] = acme.challenge;
    const status = challenge === 'valid' ? 'ready' : challenge === 'invalid' ? 'invalid' : 'pending';
    const wait = acme.retryAfter === undefined ? {} : { 'Retry-After': acme.retryAfter };
    const decided = challenge === 'valid' || challenge === 'invalid';
    const shown = {
      ...{ type: 'dns-01', status: challenge, token: 'token', url: url('challenge') },
      ...(acme.error === undefined ? {} : { error: acme.error }),
    };
    const { fails } = acme;
    if (fails?.path === path && fails.times-- > 0) return reply(fails.status, { detail: 'their text' });
    switch (path) {
      case '/newAccount':
        if (payload['onlyReturnExisting'] === true && !acme.hasAccount) return problem('accountDoesNotExist');
        acme.hasAccount = true;
        acme.accounts.push(url(`account/${acme.accounts.length}`));
        return reply(201, {}, { Location: acme.accounts.at(-1) ?? '' });
      case '/newOrder':
        if (header['kid'] !== acme.accounts.at(-1)) return problem('accountDoesNotExist');
        return reply(201, { status: 'pending' }, { Location: acme.orderAt ?? url('order') });
      case '/revokeCert':
        return acme.revocation === undefined ? reply(200, {}) : reply(400, acme.revocation);
      case '/challenge': {
        if (acme.challenge.length > 1 && isJson(payload)) acme.challenge.shift();
        const [now = 'valid'] = acme.challenge;
        return reply(200, { ...shown, status: now }, wait);
      }
      case '/authorization':
        return reply(200, {
          status: decided ? challenge : 'pending',
          identifier: acme.identifier ?? { type: 'dns', value: 'a.example' },
          challenges: [shown],
          ...acme.authorization,
        });
      case '/finalize':
        return reply(200, { status: 'valid', certificate: url('certificate') });
      case '/certificate':
        if (acme.refusal !== undefined) return reply(acme.refusal, { detail: 'pending' });
        return response
          .writeHead(200, { 'Content-Type': 'application/pem-certificate-chain', 'Replay-Nonce': 'nonce' })
          .end(acme.certificate ?? encodePem('CERTIFICATE', root.der));
      default:
        if (acme.isGone === true) return reply(404, { type: 'urn:ietf:params:acme:error:malformed' });
        return reply(200, {
          status,
          expires: acme.expires,
          authorizations: [url('authorization')],
          finalize: url('finalize'),
          ...acme.order,
        });
    }
  });
});
afterAll(async () => {
  for (const upstream of opened) upstream.close();
  await server.stop();
  folder.remove();
});
beforeEach(() => {
  const expires = new Date(Date.now() + 3_600_000).toISOString();
  acme = { accounts: [], hasAccount: false, challenge: ['pending', 'valid'], expires };
  calls = [];
  stored = new Map();
  logged = [];
  rmSync(folder.file('hook.log'), { force: true });
});

/** POST-as-GET. */
const isRead = (body: string): boolean => body.includes('"payload":""');

function readJws(body: string): { header: Json; payload: Json } {
  const read = (text: unknown): Json => {
    const value: unknown = text === '' ? {} : JSON.parse(Buffer.from(String(text), 'base64url').toString());
    return isJson(value) ? value : {};
  };
  const jws: unknown = JSON.parse(body);
  return isJson(jws) ? { header: read(jws['protected']), payload: read(jws['payload']) } : { header: {}, payload: {} };
}

/** A start of the server; the store stays. */
function start(more: Partial<ConstructorParameters<typeof AcmeUpstream>[0]> = {}): AcmeUpstream {
  const id = ({ directory, thumbprint }: { readonly directory: string; readonly thumbprint: string }) =>
    `${directory} ${thumbprint}`;
  const note = (fields: object): void => void logged.push(JSON.stringify(fields));
  const upstream = new AcmeUpstream({
    directory: `${server.url}/directory`,
    origins: [],
    tls: { ca: encodePem('CERTIFICATE', root.der) },
    accountKey,
    contact: ['mailto:pki@example.com'],
    binding: { kid: 'kid-1', key: () => Buffer.from('secret') },
    store: {
      getAcmeAccount: (of) => Promise.resolve(stored.get(id(of))),
      putAcmeAccount: (of, url) => Promise.resolve(void stored.set(id(of), url)),
    },
    challenge: 'dns-01',
    dnsHook: ['/bin/sh', '-c', 'echo "$@" >> "$0"', folder.file('hook.log')],
    timeout: 60_000,
    retryAfter: 7,
    log: { info: note, warn: note },
    ...more,
  });
  opened.push(upstream);
  return upstream;
}

const request: UpstreamRequest = {
  request_id: 'r1',
  csr: Buffer.alloc(1),
  subject: parseDistinguishedName('CN=a.example'),
  subjectAltNames: [dns('a.example')],
  requester: '',
  operation: '',
  notAfter: new Date(),
};

async function ordered(upstream: AcmeUpstream, of = request): Promise<string> {
  const answer = await upstream.submit(of, true);
  if (answer.status !== 'pending') throw new Error(answer.status);
  return answer.reference;
}

const registrations = () => calls.filter(({ path }) => path === '/newAccount').map(({ payload }) => payload);

describe('the account', () => {
  test('is looked for first, then created with contact and external account binding, and kept across starts', async () => {
    await ordered(start());
    const [first, second] = registrations();
    expect(first).toEqual({ onlyReturnExisting: true });
    expect(second).toMatchObject({ termsOfServiceAgreed: true, contact: ['mailto:pki@example.com'] });
    expect(second).toHaveProperty('externalAccountBinding');
    await Promise.all([ordered(start()), ordered(start())]);
    expect(registrations()).toHaveLength(2);
  });

  test('that exists at the server already needs no second binding', async () => {
    acme.hasAccount = true;
    const upstream = start();
    await Promise.all([ordered(upstream), ordered(upstream)]);
    expect(registrations()).toEqual([{ onlyReturnExisting: true }]);
    expect([...stored.values()]).toEqual(acme.accounts);
  });

  test('that the server no longer knows is created again, in the same request', async () => {
    await ordered(start());
    acme.hasAccount = false;
    acme.accounts = ['https://localhost/lost'];
    await ordered(start());
    expect(registrations()).toHaveLength(4);
    expect([...stored.values()]).toEqual([acme.accounts.at(-1)]);
  });
});

describe('a request', () => {
  const names = (...subjectAltNames: UpstreamRequest['subjectAltNames']) => ({ ...request, subjectAltNames });
  const only = { status: 400, code: 'UPSTREAM_NAMES' };

  test('may have DNS names and IP addresses only, and one of them as its common name', () => {
    const upstream = start();
    const ip = ipAddress('192.0.2.1');
    expect(() => upstream.check(names(ip, dns('A.example')))).not.toThrow();
    expect(() => upstream.check({ ...names(ip), subject: parseDistinguishedName('CN=192.0.2.1') })).not.toThrow();
    expect(() => upstream.check({ ...names(ip), subject: parseDistinguishedName('O=x') })).not.toThrow();
    expect(() => upstream.check({ ...names(), subject: parseDistinguishedName('O=x') })).toThrow(
      expect.objectContaining(only),
    );
    expect(() => upstream.check(names(dns('a.example'), uri('https://a.example')))).toThrow(
      expect.objectContaining(only),
    );
    expect(() => upstream.check(names(dns('b.example')))).toThrow('"a.example" is not one of the names');
  });

  test('for an IP address has an identifier of that type (RFC 8738), whatever its text in the answer', async () => {
    acme.identifier = { type: 'ip', value: '2001:DB8:0::1' };
    const upstream = start();
    const of = names(ipAddress('2001:db8::1'));
    expect(await upstream.poll(of, await ordered(upstream, of))).toMatchObject({ status: 'issued' });
    const { payload } = calls.find(({ path }) => path === '/newOrder') ?? {};
    expect(payload).toEqual({ identifiers: [{ type: 'ip', value: '2001:db8::1' }] });
  });

  test('without an order is unknown', async () => {
    expect(await start().poll(request, undefined)).toEqual({ status: 'unknown' });
  });

  test('that nothing continues is issued at once', async () => {
    expect(await start().submit(request, false)).toMatchObject({ status: 'issued' });
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(['present', 'cleanup']);
  });
});

describe('what the server says', () => {
  test.each<[string, Partial<typeof acme>, object]>([
    ['an order without a URL', { orderAt: 'none' }, { status: 500 }],
    ['an authorization without a URL', { order: { authorizations: [7] } }, { status: 500 }],
    [
      'no dns-01 challenge',
      { authorization: { challenges: ['x', { type: 'http-01' }] } },
      { status: 500, detail: 'the upstream CA offers no dns-01 challenge for "a.example"' },
    ],
    ['a challenge that is processing', { challenge: ['pending', 'processing'] }, { status: 'pending', retryAfter: 7 }],
    ['a challenge that is valid soon', { challenge: ['pending', 'processing', 'valid'] }, { status: 'issued' }],
    ['that the certificate comes later', { refusal: 503 }, { status: 503 }],
    [
      'a problem of the second challenge',
      { order: { status: 'invalid' }, authorization: { challenges: [{}, { error: { detail: 'second' } }] } },
      { reason: 'second' },
    ],
    ['a certificate that cannot be read', { certificate: '-----BEGIN CERTIFICATE-----\n!' }, { status: 'pending' }],
    ['no certificate', { certificate: 'none' }, { status: 'pending' }],
    ['a problem of the order', { order: { status: 'invalid', error: { detail: 'why' } } }, { reason: 'why' }],
    [
      'nothing about an invalid order',
      { order: { status: 'invalid' }, challenge: ['pending'] },
      { reason: 'The upstream CA rejected the request.' },
    ],
    [
      'that a ready order expired',
      { order: { status: 'x', expires: '2020-01-01T00:00:00Z' } },
      { status: 'rejected', reason: 'The order at the upstream CA expired.' },
    ],
    [
      'that an order in progress expired',
      { order: { status: 'processing', expires: '2020-01-01T00:00:00Z' } },
      { status: 'pending', reason: 'the order is processing' },
    ],
    ['no expiry', { order: { expires: undefined } }, { status: 'issued' }],
    [
      'authorizations that are decided',
      { order: { status: 'pending', expires: undefined }, authorization: { status: 'valid', challenges: [] } },
      { status: 'pending', reason: 'the order is pending' },
    ],
  ])('%s', async (_what, more, expected) => {
    Object.assign(acme, more);
    const upstream = start({ timeout: 300 });
    const answer = await ordered(upstream)
      .then((order) => upstream.poll(request, order))
      .catch((error: unknown) => error);
    expect(answer).toMatchObject(expected);
  });

  test('about authorizations needs no challenge where the account has them, and names a missing one', async () => {
    acme.challenge = ['valid'];
    const upstream = start({ challenge: 'none', timeout: 300 });
    expect(await upstream.poll(request, await ordered(upstream))).toMatchObject({ status: 'issued' });
    Object.assign(acme, { order: { status: 'pending' }, authorization: { status: 'valid' } });
    expect(await upstream.poll(request, await ordered(upstream))).toMatchObject({ reason: 'the order is pending' });
    Object.assign(acme, { challenge: ['pending'], authorization: {} });
    await expect(upstream.poll(request, await ordered(upstream))).rejects.toMatchObject({
      detail: expect.stringContaining('no authorization for "a.example"') as string,
    });
  });

  test('to a revocation: an earlier one is a success, another refusal is not, and some servers have none', async () => {
    const upstream = start();
    await upstream.revoke(root.der, 'superseded');
    await upstream.revoke(root.der, 'no such reason');
    expect(calls.filter(({ path }) => path === '/revokeCert').map(({ payload }) => payload['reason'])).toEqual([4, 0]);
    acme.revocation = { type: 'urn:ietf:params:acme:error:alreadyRevoked' };
    await upstream.revoke(root.der, 'superseded');
    acme.revocation = { type: 'urn:ietf:params:acme:error:unauthorized' };
    await expect(upstream.revoke(root.der, 'superseded')).rejects.toMatchObject({ status: 403 });
    acme.directory = { revokeCert: undefined };
    await start().revoke(root.der, 'superseded');
    expect(calls.filter(({ path }) => path === '/revokeCert')).toHaveLength(4);
  });

  test.each([
    ['another name', { type: 'dns', value: 'b.example' }],
    ['a command', { type: 'dns', value: 'x -rf / ; $(id)\n--force' }],
    ['another type', { type: 'ip', value: 'a.example' }],
    ['no name', {}],
  ])('about %s in an authorization runs no hook', async (_what, identifier) => {
    acme.identifier = identifier;
    const upstream = start();
    await expect(upstream.poll(request, await ordered(upstream))).rejects.toMatchObject({ status: 500 });
    expect(hookLog()).toEqual([]);
  });

  test('about an identifier: it is ordered once, in lower case, however often the CSR has it', async () => {
    const subjectAltNames = [dns('a.example'), dns('A.Example'), dns('a.example')];
    const upstream = start();
    const answer = await upstream.poll(request, await ordered(upstream, { ...request, subjectAltNames }));
    expect(answer.status).toBe('issued');
    const { payload } = calls.find(({ path }) => path === '/newOrder') ?? {};
    expect(payload).toEqual({ identifiers: [{ type: 'dns', value: 'a.example' }] });
  });

  test('about a wildcard is the name without it', async () => {
    acme.identifier = { type: 'dns', value: 'A.example' };
    const upstream = start();
    const of = { ...request, subjectAltNames: [dns('*.a.example')] };
    expect(await upstream.poll(of, await ordered(upstream, of))).toMatchObject({ status: 'issued' });
    expect(hookLog()[0]).toMatch(/^present _acme-challenge\.a\.example /);
  });

  test('about another origin is not followed, unless the configuration names it', async () => {
    for (const orderAt of [
      'https://other.example/order',
      'http://localhost/order',
      `${server.url.replace(/\d+$/, '1')}/order`,
    ]) {
      acme.orderAt = orderAt;
      const upstream = start();
      await expect(upstream.poll(request, await ordered(upstream))).rejects.toMatchObject({
        status: 500,
        code: 'UPSTREAM_FAILED',
      });
    }
    acme.orderAt = 'https://localhost:1/order';
    const upstream = start({ origins: ['https://localhost:1'] });
    await expect(upstream.poll(request, await ordered(upstream))).rejects.toMatchObject({ status: 503 });
  });
});

test('a hook that fails at first is 500 with what it said; one that fails at the end is a line in the log', async () => {
  const at = (verb: string) =>
    start({ dnsHook: ['/bin/sh', '-c', `test "$0" != ${verb} || { echo no >&2; exit 3; }`] });
  const upstream = at('present');
  await expect(upstream.poll(request, await ordered(upstream))).rejects.toMatchObject({
    status: 500,
    detail: '/bin/sh present ended with exit code 3: no',
  });
  acme.challenge = ['pending', 'valid'];
  const other = at('cleanup');
  expect(await other.poll(request, await ordered(other))).toMatchObject({ status: 'issued' });
  expect(logged.join()).toContain('/bin/sh cleanup ended with exit code 3: no');
});

describe('a challenge', () => {
  const looks = () => calls.filter(({ path }) => path === '/challenge').length;

  test('that is processing is polled at Retry-After; its record stays, and goes when it is final', async () => {
    acme.challenge = ['pending', 'processing'];
    acme.retryAfter = '30';
    acme.error = { detail: 'no such record yet' };
    const upstream = start();
    const order = await ordered(upstream);
    const reason = 'dns-01 for a.example is being validated: no such record yet';
    const waits = { status: 'pending', reference: order, retryAfter: 30, reason };
    expect(await upstream.poll(request, order)).toEqual(waits);
    expect(await upstream.poll(request, order)).toEqual(waits);
    expect(looks()).toBe(2);
    expect(hookLog()).toEqual([expect.stringMatching(/^present /)]);
    expect(logged.filter((line) => line.includes(reason))).toHaveLength(1);
    acme.challenge = ['valid'];
    expect(await upstream.poll(request, order)).toMatchObject({ status: 'issued' });
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(['present', 'cleanup']);
  });

  const error = { detail: 'no such record yet' };
  test.each<[string, string[], object | undefined, boolean[]]>([
    ['is pending while the server validates it, is answered once', ['pending'], undefined, [false, true, true, true]],
    [
      'is processing again after a failure, is answered once',
      ['pending', 'processing'],
      error,
      [false, true, true, true],
    ],
    [
      'failed and stays pending, is answered again, as RFC 8555 §8.2 says',
      ['pending'],
      error,
      [false, true, false, true],
    ],
  ])('that %s', async (_what, challenge, problem, reads) => {
    acme.challenge = challenge;
    acme.retryAfter = '30';
    if (problem !== undefined) acme.error = problem;
    const upstream = start();
    const order = await ordered(upstream);
    const now = vi.spyOn(Date, 'now');
    onTestFinished(() => now.mockRestore());
    for (let look = 0; look < 4; look++) {
      now.mockReturnValue(new Date().getTime() + look * 3000);
      expect(await upstream.poll(request, order)).toMatchObject({ status: 'pending' });
    }
    expect(calls.filter(({ path }) => path === '/challenge').map((call) => call.isRead)).toEqual(reads);
    expect(hookLog()).toHaveLength(1);
  });

  test.each([
    ['ends', 403, ['present', 'cleanup']],
    ['goes on', 502, ['present']],
  ])('%s when the server answers %i, and its record with it', async (_, status, verbs) => {
    acme.challenge = ['pending', 'processing'];
    acme.retryAfter = '30';
    const upstream = start();
    const order = await ordered(upstream);
    await upstream.poll(request, order);
    acme.fails = { path: '/authorization', status, times: 1 };
    await expect(upstream.poll(request, order)).rejects.toMatchObject({ status: status === 403 ? 403 : 500 });
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(verbs);
  });

  test.each<[string, boolean, string, string, string, string[]]>([
    ['once for a decided challenge, after a restart', true, 'pending', 'valid', 'valid', ['cleanup']],
    ['never for an authorization that was valid before', false, 'pending', 'valid', 'valid', []],
    ['never for a challenge that was not used', true, 'pending', 'valid', 'pending', []],
    ['never for an order that has failed', true, 'invalid', 'pending', 'pending', []],
  ])('the record is removed %s', async (_, isInherited, order, authorization, challenge, verbs) => {
    Object.assign(acme, { order: { status: order }, authorization: { status: authorization }, challenge: [challenge] });
    const before = start();
    const url = await ordered(before);
    const upstream = isInherited ? start({ timeout: 300 }) : before;
    for (let look = 0; look < 2; look++) await upstream.poll(request, url);
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(verbs);
  });

  test('of an order that nobody polls any more: its record goes with the poll of another one', async () => {
    acme.challenge = ['pending', 'processing'];
    acme.retryAfter = '30';
    const upstream = start();
    await upstream.poll(request, await ordered(upstream));
    acme.orderAt = `${server.url}/another`;
    const other = await ordered(upstream);
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 7_200_000);
    onTestFinished(() => now.mockRestore());
    acme.expires = '9999-01-01T00:00:00Z';
    await upstream.poll(request, other);
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(['present', 'cleanup']);
  });

  test('that fails is a rejection with the reason of the CA, and its record goes', async () => {
    acme.challenge = ['pending', 'invalid'];
    acme.error = { detail: 'wrong TXT record' };
    const upstream = start();
    const answer = await upstream.poll(request, await ordered(upstream));
    expect(answer).toEqual({ status: 'rejected', reason: 'wrong TXT record' });
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(['present', 'cleanup']);
    expect(logged.join()).toContain('wrong TXT record');
  });

  test('of an order that expires is a rejection with the reason, and its record goes', async () => {
    acme.challenge = ['pending', 'processing'];
    acme.retryAfter = '30';
    const upstream = start();
    const order = await ordered(upstream);
    await upstream.poll(request, order);
    acme.expires = new Date(Date.now() - 1000).toISOString();
    const reason = 'The order at the upstream CA expired: dns-01 for a.example is being validated.';
    expect(await upstream.poll(request, order)).toEqual({ status: 'rejected', reason });
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(['present', 'cleanup']);
  });

  test.each([
    [['processing', 'valid'], 'issued'],
    [['processing', 'invalid'], 'rejected'],
    [['valid'], 'issued'],
    [['invalid'], 'rejected'],
  ])('goes on after a restart, where it is %j, and its record goes', async (later, status) => {
    acme.challenge = ['pending', 'processing'];
    acme.retryAfter = '30';
    const before = start();
    const order = await ordered(before);
    await before.poll(request, order);
    const after = start();
    for (const [index, one] of later.entries()) {
      acme.challenge = [one];
      const answer = await after.poll(request, order);
      expect(answer.status).toBe(index + 1 < later.length ? 'pending' : status);
    }
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(['present', 'cleanup']);
    expect(hookLog()[0]?.split(' ').slice(1)).toEqual(hookLog()[1]?.split(' ').slice(1));
  });

  test('of a request that nothing continues is given up with its record', async () => {
    acme.challenge = ['pending', 'processing'];
    acme.retryAfter = '3600';
    expect(await start().submit(request, false)).toMatchObject({ status: 'pending' });
    expect(hookLog().map((line) => line.split(' ')[0])).toEqual(['present', 'cleanup']);
  });
});

describe('a request that nothing continues', () => {
  const submitted = async (path: string, status: number, times: number) => {
    acme.fails = { path, status, times };
    return start()
      .submit(request, false)
      .catch((error: unknown) => error);
  };

  test('looks once more after its CSR was sent, and its outcome is open after that', async () => {
    expect(await submitted('/finalize', 502, 1)).toMatchObject({ status: 'issued' });
    expect(await submitted('/finalize', 502, 2)).toBeInstanceOf(Unanswered);
  });

  test('fails at once before that, and when it is refused', async () => {
    for (const [path, status, expected] of [
      ['/authorization', 502, 500],
      ['/finalize', 403, 403],
    ] as const) {
      const failure = await submitted(path, status, 1);
      expect(failure).toMatchObject({ status: expected });
      expect(failure).not.toBeInstanceOf(Unanswered);
    }
  });

  test('whose order is polled fails, and is not looked at again', async () => {
    const upstream = start();
    const order = await ordered(upstream);
    acme.fails = { path: '/finalize', status: 502, times: 1 };
    await expect(upstream.poll(request, order)).rejects.toMatchObject({ status: 500 });
  });
});

describe.each([403, 404, 401])('a certificate that the server refuses with %i', (refusal) => {
  const waiting = async () => {
    const upstream = start();
    const order = await ordered(upstream);
    acme.refusal = refusal;
    const reason = expect.stringContaining('the certificate cannot be fetched yet: ') as string;
    expect(await upstream.poll(request, order)).toEqual({ status: 'pending', reference: order, retryAfter: 7, reason });
    return { upstream, order };
  };

  test('is fetched by a later poll', async () => {
    const { upstream, order } = await waiting();
    delete acme.refusal;
    expect(await upstream.poll(request, order)).toMatchObject({ status: 'issued' });
  });

  test.each([
    ['for a minute', 61_000, 3600],
    ['until the order expires', 2000, 1],
  ])('%s: the request fails, with the reason', async (_, later, lifetime) => {
    acme.expires = new Date(Date.now() + lifetime * 1000).toISOString();
    const { upstream, order } = await waiting();
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + later);
    onTestFinished(() => now.mockRestore());
    const reason = expect.stringMatching(/^The upstream CA does not hand out the certificate: \S/) as string;
    expect(await upstream.poll(request, order)).toEqual({ status: 'rejected', reason });
    expect(logged.join()).toContain('does not hand out');
  });
});

test('an order that the server has forgotten is unknown, so that it ends', async () => {
  const upstream = start();
  const order = await ordered(upstream);
  acme.isGone = true;
  expect(await upstream.poll(request, order)).toEqual({ status: 'unknown' });
});
