/** Client certificates that nginx, HAProxy and Apache forward (RFC 9440), with the configurations of config/proxies. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, extKeyUsage, makeCa, makeClient, subjectAltName, type Issuer } from '../support/certificates.ts';
import { buildCsr, challengePassword, commonName, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import { call, openTls, sendRaw, type Answer } from '../support/https.ts';
import { accepts, freePort } from '../support/ports.ts';
import { findCommand, requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { killed, untilReady } from '../support/spawned.ts';
import { removeFolder } from '../support/folders.ts';

const DEVICE = '127.0.0.21';

const keyOf = ({ keys }: Issuer): string => keys.privateKey.export({ format: 'pem', type: 'pkcs8' });
const pemOf = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);
const header = (pem: string): string => `:${pem.replace(/-----[^-]+-----|\s/g, '')}:`;

let estuary: Estuary;
let proxyCa: Issuer;
let proxy: ClientIdentity;
let device: ClientIdentity;
let other: ClientIdentity;
const key = makeKey();

beforeAll(async () => {
  proxyCa = await makeCa('CN=Proxy CA');
  const leaf = await makeClient('CN=proxy', proxyCa);
  proxy = { cert: pemOf(leaf), key: keyOf(leaf) };
  estuary = await Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'proxies.pem'), proxy.cert);
      section(config, 'est')['client_certificate_header'] = {
        proxy_certificates: 'proxies.pem',
        client_address: 'x-forwarded-for',
      };
    },
  });
  device = await estuary.enrolled(key, 'device-1');
  other = await estuary.enrolled(makeKey(), 'device-2');
});
afterAll(() => estuary.stop());

const csr = (cn = 'device-1'): string => onTheWire(simpleCsr(key, cn));
const inShort = ({ status, text }: Answer): string => `${status} ${text}`.trim();
/** As a proxy sends it. */
const through = (headers: Record<string, string | string[]>, path = 'simplereenroll', body = csr()): Promise<Answer> =>
  estuary.enroll(body, { path, client: proxy, headers: { 'X-Forwarded-For': DEVICE, ...headers } });

describe('the headers', () => {
  test('the certificate of a proxy in front renews, with the address of the client', async () => {
    const answer = await through({ 'Client-Cert': header(device.cert) });
    expect(answer.status).toBe(200);
    const { json } = await estuary.admin('GET', '/admin/audit?type=auth.mtls');
    const [record] = itemsOf(json);
    expect(record).toMatchObject({ subject: 'CN=device-1', address: DEVICE });
    expect(record?.['detail']).toContain('forwarded by a proxy');
  });

  test.each([
    ['Client-Cert', () => ({ 'Client-Cert': header(device.cert) })],
    ['Client-Cert-Chain', () => ({ 'Client-Cert-Chain': header(device.cert) })],
  ])('%s of anybody else is refused, on every operation', async (_, headers) => {
    for (const client of [device, undefined])
      for (const [path, method] of [
        ['simplereenroll', 'POST'],
        ['cacerts', 'GET'],
      ] as const) {
        const more = client === undefined ? {} : { client };
        const body = method === 'POST' ? { body: csr() } : {};
        const answer = await estuary.est(path, {
          method,
          ...body,
          ...more,
          headers: { 'Content-Type': 'application/pkcs10', ...headers() },
        });
        expect(inShort(answer)).toBe(
          '400 This connection may not send Client-Cert or Client-Cert-Chain: it is not that of a trusted proxy.',
        );
      }
  });

  test("the proxy's own certificate authenticates nobody", async () => {
    expect(inShort(await through({}))).toBe('401 client certificate required');
    const { token } = await estuary.otp({ client_id: 'device-1' });
    expect(
      (await through({ Authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}` }, 'simpleenroll'))
        .status,
    ).toBe(200);
  });

  test('a certificate that is not trusted is refused as in a handshake', async () => {
    const stranger = await makeClient('CN=device-1', await makeCa('CN=Stranger'));
    expect(inShort(await through({ 'Client-Cert': header(pemOf(stranger)) }))).toBe(
      '401 certificate signed by unknown authority',
    );
  });

  test.each<[string, () => Record<string, string | string[]>]>([
    ['doubled', () => ({ 'Client-Cert': [header(device.cert), header(other.cert)] })],
    ['without colons', () => ({ 'Client-Cert': header(device.cert).slice(1, -1) })],
    ['as a list', () => ({ 'Client-Cert': `${header(device.cert)}, ${header(other.cert)}` })],
    ['as PEM', () => ({ 'Client-Cert': encodeURIComponent(device.cert) })],
    ['not a certificate', () => ({ 'Client-Cert': ':AAAA:' })],
    ['empty', () => ({ 'Client-Cert': '' })],
    ['oversized', () => ({ 'Client-Cert': `:${'AAAA'.repeat(12_000)}:` })],
    ['a chain alone', () => ({ 'Client-Cert-Chain': header(device.cert) })],
    [
      'a chain that is too long',
      () => ({
        'Client-Cert': header(device.cert),
        'Client-Cert-Chain': Array(9).fill(header(device.cert)).join(', '),
      }),
    ],
    ['a malformed chain', () => ({ 'Client-Cert': header(device.cert), 'Client-Cert-Chain': 'x' })],
    ['no address', () => ({ 'Client-Cert': header(device.cert), 'X-Forwarded-For': 'unknown' })],
  ])('%s: 400', async (_, headers) => {
    expect((await through(headers())).status).toBe(400);
  });

  test('an address that is missing is reported as missing', async () => {
    const body = csr();
    const text = await sendRaw(
      estuary.server.port('est'),
      { ca: estuary.root, ...proxy },
      `POST /.well-known/est/simplereenroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs10\r\nClient-Cert: ${header(device.cert)}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(text).toMatch(/^HTTP\/1\.1 400 .*X-Forwarded-For is missing/s);
  });

  test('RFC 8941 §3.1: a chain may be on several lines', async () => {
    const chain = [header(other.cert), `${header(other.cert)} ,${header(other.cert)}`];
    expect((await through({ 'Client-Cert': header(device.cert), 'Client-Cert-Chain': chain })).status).toBe(200);
  });

  test('a folded header is refused', async () => {
    const socket = await openTls(estuary.server.port('est'), { ca: estuary.root, ...proxy });
    const folded = header(device.cert).replace(/^(.{40})/, '$1\r\n ');
    const body = csr();
    socket.write(
      `POST /.well-known/est/simplereenroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs10\r\nX-Forwarded-For: ${DEVICE}\r\nClient-Cert: ${folded}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    await once(socket, 'close');
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('a chain leads to the anchor', async () => {
    expect(
      (
        await through({
          'Client-Cert': header(device.cert),
          'Client-Cert-Chain': `${header(other.cert)}, ${header(estuary.root)}`,
        })
      ).status,
    ).toBe(200);
  });

  test('a CSR with a channel binding is refused', async () => {
    const bound = buildCsr(key, { subject: commonName('device-1'), attributes: [challengePassword('AAAA')] });
    const answer = await through({ 'Client-Cert': header(device.cert) }, 'simplereenroll', onTheWire(bound));
    expect(answer.status).toBe(400);
  });

  test('a lockout hits the address of the client, not that of the proxy', async () => {
    const guess = (address: string): Promise<Answer> =>
      through({ 'X-Forwarded-For': `127.0.0.99, ${address}`, Authorization: 'Basic eDp3cm9uZw==' }, 'simpleenroll');
    for (let i = 0; i < 6; i++) await guess('192.0.2.66');
    expect(inShort(await guess('192.0.2.66'))).toBe('401 too many failures, locked out');
    expect(inShort(await guess('192.0.2.67'))).toBe('401 invalid OTP token');
  });
});

const PROXIES = {
  nginx: {
    command: 'nginx',
    file: 'nginx.conf',
    arguments: (file: string) => ['-c', file, '-e', 'stderr', '-g', 'daemon off; master_process off;'],
  },
  haproxy: { command: 'haproxy', file: 'haproxy.cfg', arguments: (file: string) => ['-db', '-f', file] },
  Apache: { command: 'apache2', file: 'apache.conf', arguments: (file: string) => ['-D', 'FOREGROUND', '-f', file] },
} as const;

/** What a package's own configuration has around it. */
const aroundApache = (dir: string): string =>
  ['mpm_event', 'authz_core', 'headers', 'proxy', 'proxy_http', 'ssl']
    .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so\n`)
    .join('') +
  `ServerRoot ${dir}\nPidFile ${dir}/apache.pid\nErrorLog ${dir}/error.log\n${process.getuid?.() === 0 ? 'User www-data\n' : ''}`;

describe.skipIf(!requires('nginx', 'haproxy', 'apache')).each(['nginx', 'haproxy', 'Apache'] as const)(
  'through %s',
  (name) => {
    let child: ChildProcess | undefined;
    let dir: string;
    let port: number;

    beforeAll(async () => {
      dir = mkdtempSync(join(tmpdir(), 'estuary-proxy-'));
      port = await freePort();
      const front = await makeClient('CN=front', proxyCa, {
        extensions: [extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
      });
      const files: Record<string, string> = {
        'est.pem': pemOf(front),
        'est.key': keyOf(front),
        'est-and-key.pem': pemOf(front) + keyOf(front),
        'proxy.pem': proxy.cert,
        'proxy.key': proxy.key,
        'proxy-and-key.pem': proxy.cert + proxy.key,
        'estuary-root.pem': estuary.root,
        'client-anchors.pem': estuary.root,
      };
      for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
      const { command, file, arguments: argumentsOf } = PROXIES[name];
      const configuration = readFileSync(join(ROOT, 'config/proxies', file), 'utf8')
        .replaceAll(/\/etc\/(nginx|haproxy|apache2)\//g, `${dir}/`)
        .replace(/(127\.0\.0\.1|localhost):9443/, `$1:${estuary.server.port('est')}`)
        .replace(/Listen 443([^]*) \*:443>/, `${aroundApache(dir)}Listen 127.0.0.1:${port}$1 *:${port}>`)
        .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
        .replace('bind :443', `bind 127.0.0.1:${port}`)
        .replace('events {', `pid ${dir}/nginx.pid;\nerror_log stderr;\nevents {`)
        .replace('http {', `http {\n  access_log off;`);
      writeFileSync(join(dir, file), configuration);
      child = spawn(findCommand(command) ?? command, argumentsOf(join(dir, file)), {
        stdio: ['ignore', 'ignore', 'ignore'],
      });
      await untilReady(name, () => accepts(port));
    });
    afterAll(async () => {
      await killed(child);
      removeFolder(dir);
    });

    const renew = (
      client: ClientIdentity | undefined,
      headers: Record<string, string | string[]> = {},
    ): Promise<Answer> =>
      call({
        port,
        path: '/.well-known/est/simplereenroll',
        method: 'POST',
        headers: { 'Content-Type': 'application/pkcs10', ...headers },
        body: csr(),
        tls: { ca: pemOf(proxyCa), ...client },
        agent: new Agent({ keepAlive: false, localAddress: DEVICE }),
      });

    test('a client certificate renews, and the address of the client is recorded', async () => {
      const answer = await renew(device);
      expect(inShort(answer)).toMatch(/^200/);
      const { json } = await estuary.admin('GET', '/admin/audit?type=auth.mtls&limit=1000');
      const id = answer.headers['x-request-id'];
      expect(itemsOf(json).find(({ request_id }) => request_id === id)).toMatchObject({
        subject: 'CN=device-1',
        address: DEVICE,
      });
    });

    test('a header of 64 KiB reaches the server', async () => {
      const Authorization = `Negotiate ${Buffer.alloc(65_536).toString('base64')}`;
      expect((await renew(device, { Authorization })).status).toBe(200);
      expect(inShort(await renew(undefined, { Authorization }))).toBe('401 client certificate required');
    });

    test('another client certificate, or none, is refused', async () => {
      expect((await renew(other)).status).toBe(403);
      expect(inShort(await renew(undefined))).toBe('401 client certificate required');
    });

    test.each([
      ['folded', () => header(device.cert).replace(/^(.{40})/, '$1\r\n ')],
      ['oversized', () => `:${'AAAA'.repeat(12_000)}:`],
    ])('a header that is %s gains nothing', async (_, value) => {
      // One request: two have signatures, and so lengths, that can differ.
      const body = csr();
      const text = await sendRaw(
        port,
        { ca: pemOf(proxyCa) },
        `POST /.well-known/est/simplereenroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs10\r\nClient-Cert: ${value()}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      expect(text).toMatch(/^HTTP\/1\.1 4(00|01|31) /);
    });

    test.each<[string, () => Record<string, string | string[]>]>([
      ['Client-Cert', () => ({ 'Client-Cert': header(device.cert) })],
      ['two of them', () => ({ 'Client-Cert': [header(device.cert), header(device.cert)] })],
      ['in other letters', () => ({ 'client-CERT': header(device.cert), 'CLIENT-cert-CHAIN': header(device.cert) })],
      ['and an address', () => ({ 'Client-Cert': header(device.cert), 'X-Forwarded-For': '192.0.2.1' })],
    ])('a client cannot spoof the headers: %s', async (_, headers) => {
      expect(inShort(await renew(undefined, headers()))).toBe('401 client certificate required');
      expect((await renew(other, headers())).status).toBe(403);
      expect((await renew(device, headers())).status).toBe(200);
    });
  },
);
