/** Networks between a device and its EST server: proxies, addresses, several servers, other names. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { proxyFor } from '../../src/client/http/proxy.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { estuary, type Done } from '../support/local-command.ts';
import { dns, extKeyUsage, ip, makeCertificate, subjectAltName, type Issuer } from '../support/certificates.ts';
import { startProxy, type ConnectProxy } from '../support/connect-proxy.ts';
import { makeEstCa, type Answers, type EstCa } from '../support/est-ca.ts';
import { csrOf, sendCertificates, sendStatus, startStandIn, type StandIn } from '../support/est-stand-in.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { freePort } from '../support/ports.ts';

const folder = temporaryFolder();
const file = (name: string, content: string): string => {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
};
let est: EstCa;
let clients = 0;
const started: { stop(): Promise<void> }[] = [];
const kept = <T extends { stop(): Promise<void> }>(one: T): T => {
  started.push(one);
  return one;
};

beforeAll(async () => {
  est = await makeEstCa();
  file('otp', 'secret\n');
});
afterEach(() => Promise.all(started.splice(0).map((part) => part.stop())));
afterAll(() => folder.remove());

const start = async (answers: Answers = {}): Promise<StandIn> => kept(await est.start(answers));
const proxy = async (options: Parameters<typeof startProxy>[0] = {}): Promise<ConnectProxy> =>
  kept(await startProxy(options));
const enroll = (
  url: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Done> => {
  const out = folder.file(`client-${++clients}`);
  const fixed = ['--out', out, '--subject', 'CN=web', '--otp-file', folder.file('otp')];
  return estuary(['client', 'enroll', '--url', url, '--ca-fingerprint', est.fingerprint, ...fixed, ...args], { env });
};
const targetOf = ({ url }: StandIn): string => new URL(url).host;
describe('a proxy', () => {
  test('from HTTPS_PROXY, in either case, or --proxy carries every connection', async () => {
    const [server, one] = [await start(), await proxy()];
    const url = `http://127.0.0.1:${one.port}`;
    for (const run of [
      enroll(server.url, [], { HTTPS_PROXY: url }),
      enroll(server.url, [], { https_proxy: url, HTTPS_PROXY: 'http://192.0.2.1' }),
      enroll(server.url, ['--proxy', url], { HTTPS_PROXY: 'http://192.0.2.1', NO_PROXY: 'elsewhere.example' }),
    ])
      expect(await run).toMatchObject({ code: 0 });
    expect(new Set(one.targets)).toEqual(new Set([targetOf(server)]));
    // Bootstrap and enrollment.
    expect(one.targets).toHaveLength(6);
  });

  test('is not used for servers in NO_PROXY, nor with --proxy none', async () => {
    const [server, one] = [await start(), await proxy()];
    const HTTPS_PROXY = `http://127.0.0.1:${one.port}`;
    expect(await enroll(server.url, [], { HTTPS_PROXY, NO_PROXY: 'localhost' })).toMatchObject({ code: 0 });
    expect(await enroll(server.url, ['--proxy', 'none'], { HTTPS_PROXY })).toMatchObject({ code: 0 });
    expect(one.targets).toEqual([]);
  });

  test('gets its user and password, from the URL or a file; neither appears in a message', async () => {
    const [server, one] = [await start(), await proxy({ user: 'me:pass word' })];
    const at = `127.0.0.1:${one.port}`;
    expect(await enroll(server.url, ['--proxy', `http://me:pass%20word@${at}`])).toMatchObject({ code: 0 });
    expect(statSync(folder.file(`client-${clients}/client.toml`)).mode & 0o777).toBe(0o600);
    const withFile = ['--proxy', `http://me@${at}`, '--proxy-password-file', file('proxy', 'pass word\n')];
    expect(await enroll(server.url, withFile)).toMatchObject({ code: 0 });
    expect(readFileSync(folder.file(`client-${clients}/client.toml`), 'utf8')).not.toContain('pass word');
    const wrong = await enroll(server.url, [], { HTTPS_PROXY: `http://me:wrong-secret@${at}` });
    expect(wrong.code).toBe(1);
    expect(wrong.err).toContain(`the proxy ${at}: rejects CONNECT ${targetOf(server)} with 407: its user or password`);
    expect(wrong.err).not.toContain('wrong-secret');
  });

  test('may speak TLS, with a certificate of a public CA or one of the operating system', async () => {
    const certificate = await makeCertificate({
      subject: 'CN=proxy',
      issuer: est.ca,
      extensions: [extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
    });
    const [server, one] = [await start(), await proxy({ certificate })];
    const args = ['--proxy', `https://localhost:${one.port}`];
    const untrusted = await enroll(server.url, args);
    expect([untrusted.code, one.targets]).toEqual([1, []]);
    expect(untrusted.err).toContain(`the proxy localhost:${one.port}: `);
    const former = getCACertificates('default');
    setDefaultCACertificates([...former, encodePem('CERTIFICATE', est.ca.der)]);
    try {
      expect(await enroll(server.url, args)).toMatchObject({ code: 0 });
    } finally {
      setDefaultCACertificates(former);
    }
    expect(one.targets).toHaveLength(2);
  });

  test.each([403, 502, 503])('that answers %i is named in the message', async (status) => {
    const [server, one] = [await start(), await proxy({ status })];
    const done = await enroll(server.url, ['--proxy', `http://127.0.0.1:${one.port}`]);
    expect([done.code, done.err]).toEqual([
      1,
      expect.stringContaining(`rejects CONNECT ${targetOf(server)} with ${status}`) as unknown,
    ]);
    expect(server.requests).toEqual([]);
  });

  test('with an invalid URL is refused without its text', async () => {
    const option = await enroll('https://localhost', ['--proxy', 'socks5://u:hidden@x']);
    expect([option.code, option.err]).toEqual([
      2,
      expect.stringContaining('server.proxy: is not an http:// or https:// URL') as unknown,
    ]);
    const variable = await enroll('https://localhost', [], { HTTPS_PROXY: 'socks5://u:hidden@x' });
    expect([variable.code, variable.err]).toEqual([
      1,
      expect.stringContaining('HTTPS_PROXY is not an http:// or') as unknown,
    ]);
    expect(option.err + variable.err).not.toContain('hidden');
  });

  test.each([
    ['https://est.example.com', 'example.com', true],
    ['https://est.example.com', '.example.com', true],
    ['https://est.example.com', '*.example.com', true],
    ['https://example.com', '.example.com', true],
    ['https://est.example.com', 'other.com, EST.EXAMPLE.COM', true],
    ['https://notexample.com', 'example.com', false],
    ['https://est.example.com:8443', 'example.com:8443', true],
    ['https://est.example.com:8443', 'example.com:443', false],
    ['https://est.example.com', 'example.com:443', true],
    ['https://est.example.com', '*', true],
    ['https://192.0.2.7:8443', '192.0.2.7', true],
    ['https://192.0.2.7', '192.0.2.0/24', true],
    ['https://192.0.3.7', '192.0.2.0/24', false],
    ['https://192.0.2.7', '2.7', false],
    ['https://[2001:db8::7]', '2001:db8::7', true],
    ['https://[2001:db8::7]', '[2001:db8::7]', true],
    ['https://[2001:db8::7]:8443', '[2001:db8::7]:8443', true],
    ['https://[2001:db8::7]', '2001:db8::/32', true],
    ['https://[2001:db8::7]', '192.0.2.0/24', false],
    ['https://est.example.com', '', false],
    ['https://est.example.com', '/, 1/2/3, 192.0.2.0/99', false],
  ])('%s with NO_PROXY "%s": excepted %s', (url, NO_PROXY, excepted) => {
    const found = proxyFor(new URL(url), undefined, undefined, { HTTPS_PROXY: 'http://proxy.example', NO_PROXY });
    expect(found === undefined).toBe(excepted);
  });
});

describe('an IPv6 literal', () => {
  test('is connected to, expected in the certificate, and passed to a proxy', async () => {
    const certificate: Issuer = await makeCertificate({
      subject: 'CN=server',
      issuer: est.ca,
      extensions: [extKeyUsage(OID.serverAuth), subjectAltName(ip('::1'))],
    });
    const hosts: (string | undefined)[] = [];
    const server = kept(
      await startStandIn(
        certificate,
        async (request) => {
          hosts.push(request.headers.host);
          if (request.operation === 'cacerts') return sendCertificates(request, [est.ca.der]);
          if (request.operation === 'csrattrs') return sendStatus(request, 204);
          return sendCertificates(request, [await est.issue(csrOf(request))]);
        },
        {},
        '::1',
      ),
    );
    const url = `https://[::1]:${new URL(server.url).port}`;
    expect(await enroll(url)).toMatchObject({ code: 0 });
    expect(new Set(hosts)).toEqual(new Set([new URL(url).host]));
    const one = await proxy();
    expect(await enroll(url, ['--proxy', `http://127.0.0.1:${one.port}`])).toMatchObject({ code: 0 });
    expect(one.targets[0]).toBe(new URL(url).host);
    const strange = await start();
    const done = await enroll(`https://127.0.0.1:${new URL(strange.url).port}`);
    expect(done.err).toContain('certificate is for localhost, not for 127.0.0.1');
  });
});

describe('several servers', () => {
  test('are tried in order until one works, with the same request', async () => {
    const refusing = `https://localhost:${await freePort()}`;
    const bodies: string[] = [];
    const busy = await start({
      simpleenroll: (request) => (bodies.push(request.body), sendStatus(request, 503)),
    });
    const strange = kept(await (await makeEstCa('CN=Strange')).start());
    const good = await start();
    const done = await enroll([refusing, busy.url, strange.url, good.url].join(','));
    expect(done.code).toBe(0);
    for (const [failed, next] of [
      [refusing, busy.url],
      ['simpleenroll: 503', strange.url],
      ['is not trusted', good.url],
    ])
      expect(done.err).toMatch(new RegExp(`warning: .*${failed?.replace('https://', '') ?? ''}.*trying ${next ?? ''}`));
    expect(new Set([...bodies, ...good.requests.flatMap(({ body }) => body || [])]).size).toBe(1);
  });

  test('a rejection or 429 ends the attempt', async () => {
    for (const status of [400, 403, 429]) {
      const [first, second] = [await start({ simpleenroll: (request) => sendStatus(request, status) }), await start()];
      expect(await enroll(`${first.url},${second.url}`)).toMatchObject({ code: 1 });
      expect(second.requests).toEqual([]);
    }
  });

  test('single operations try them, too', async () => {
    const [refusing, good] = [`https://localhost:${await freePort()}`, await start()];
    const args = ['client', 'cacerts', '--url', `${refusing},${good.url}`, '--ca-fingerprint', est.fingerprint];
    expect(await estuary(args)).toMatchObject({ code: 0, out: encodePem('CERTIFICATE', est.ca.der) });
  });
});

describe('names', () => {
  test('--tls-server-name replaces the host in the certificate check and in SNI, not in the URL', async () => {
    const server = await start();
    const url = `https://127.0.0.1:${new URL(server.url).port}`;
    expect((await enroll(url)).err).toContain('not for 127.0.0.1');
    expect(await enroll(url, ['--tls-server-name', 'localhost'])).toMatchObject({ code: 0 });
    expect(server.requests.at(-1)?.headers.host).toBe(new URL(url).host);
    expect(server.requests.at(-1)?.socket).toMatchObject({ servername: 'localhost' });
    expect((await enroll(server.url, ['--tls-server-name', 'other.example'])).err).toContain(
      'certificate is for localhost, not for other.example',
    );
  });

  test.each([
    ['ca:5', 'ca:5'],
    ["a!$&'()*+,;=:@-._~z", "a!$&'()*+,;=:@-._~z"],
    ['ä b%', '%C3%A4%20b%25'],
  ])('the label %s is a path segment', async (label, segment) => {
    const server = await start();
    await enroll(server.url, ['--label', label]);
    expect(server.requests[0]?.path).toBe(`/.well-known/est/${segment}/cacerts`);
  });

  test.each(['a/b', '..', '.', ''])('the label "%s" is refused', async (label) => {
    expect(await enroll('https://localhost', ['--label', label])).toMatchObject({ code: 2 });
  });
});

describe('a bearer token', () => {
  const accept: Answers = {
    simpleenroll: async (request) =>
      request.headers.authorization === 'Bearer ey.J.w-t_=='
        ? sendCertificates(request, [await est.issue(csrOf(request))])
        : sendStatus(request, 401, { 'WWW-Authenticate': 'Bearer' }),
  };
  const withToken = (text: string): readonly string[] => ['--token-file', file('jwt', text)];

  test('authenticates an enrollment without a challenge, and nothing else', async () => {
    const server = await start(accept);
    expect(await enroll(server.url, withToken('ey.J.w-t_==\n'))).toMatchObject({ code: 0 });
    expect(server.requests.map(({ operation, headers }) => [operation, headers.authorization])).toEqual([
      ['cacerts', undefined],
      ['cacerts', undefined],
      ['csrattrs', undefined],
      ['simpleenroll', 'Bearer ey.J.w-t_=='],
    ]);
  });

  test('is never sent to a server that is not authenticated, and never logged', async () => {
    const server = await start(accept);
    const out = folder.file(`client-${++clients}`);
    const trust = ['--ca-fingerprint', 'ab'.repeat(32), ...withToken('hidden-token')];
    const done = await estuary(['client', 'enroll', '--url', server.url, '--out', out, '--subject', 'CN=a', ...trust]);
    expect(done.code).toBe(1);
    expect(server.requests.flatMap(({ headers }) => headers.authorization ?? [])).toEqual([]);
    expect((await enroll(server.url, withToken('hidden-token'))).err).not.toContain('hidden-token');
  });

  test('that is malformed is refused', async () => {
    const server = await start(accept);
    const done = await enroll(server.url, withToken('two words\r\nX: y'));
    expect([done.code, done.err]).toEqual([1, expect.stringContaining('is not a bearer token') as unknown]);
  });
});
