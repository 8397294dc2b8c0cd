/**
 * RFC 7030 §3–§4.2, RFC 8951 on cacerts, simpleenroll and simplereenroll.
 *
 * Longer than other files: its cases share a server.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  attribute,
  buildCsr,
  commonName,
  dns,
  extensionRequest,
  ip,
  makeKey,
  name,
  onTheWire,
  san,
  simpleCsr,
} from '../support/csr.ts';
import { certificatePem, certificatesOf, Estuary, type ClientIdentity } from '../support/estuary.ts';
import { openTls, sendRaw, type Answer } from '../support/https.ts';
import { printableString, utf8String } from '../../src/pki/der/der.ts';

let estuary: Estuary;
const key = makeKey();
const wire = onTheWire(simpleCsr(key, 'device-1', ['a.example', 'b.example']));
let device: ClientIdentity;
const PLAIN = 'text/plain; charset=utf-8';

const otp = async (): Promise<string> => (await estuary.otp()).token;
const leaf = (pem: string): X509Certificate => new X509Certificate(pem);

beforeAll(async () => {
  estuary = await Estuary.start();
  device = await estuary.enrolled(key, 'device-1', ['a.example', 'b.example']);
});
afterAll(() => estuary.stop());

describe('RFC 7030 §3.2.2: paths and labels', () => {
  test('without a label the default CA answers, with one the CA of that name', async () => {
    const issuers = await Promise.all(
      ['cacerts', 'devices/cacerts', 'lab/cacerts'].map(async (path) => {
        const [first] = certificatesOf(await estuary.est(path));
        return first === undefined ? '' : new X509Certificate(first).subject;
      }),
    );
    expect(issuers[0]).toMatch(/Devices CA/);
    expect(issuers[1]).toBe(issuers[0]);
    expect(issuers[2]).toMatch(/Lab CA/);
  });

  test('an enrollment with a label is signed by that CA', async () => {
    const answer = await estuary.enroll(wire, { password: await otp(), path: 'lab/simpleenroll' });
    expect(leaf(certificatePem(answer)).issuer).toMatch(/Lab CA/);
  });
});

describe('RFC 7030 §3.3: TLS', () => {
  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is spoken', async (version) => {
    const answer = await estuary.est('cacerts', { tls: { minVersion: version, maxVersion: version } });
    expect(answer.status).toBe(200);
  });

  test('TLS 1.1 is not', async () => {
    const old = { ca: estuary.root };
    const more = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await expect(openTls(estuary.server.port('est'), old, more)).rejects.toThrow();
  });

  test.each(['ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384', 'AES128-GCM-SHA256', 'NULL'])(
    'the suite %s (no AEAD, or no forward secrecy) is refused',
    async (ciphers) => {
      const tls = { ca: estuary.root, maxVersion: 'TLSv1.2' } as const;
      await expect(openTls(estuary.server.port('est'), tls, { ciphers: `${ciphers}:@SECLEVEL=0` })).rejects.toThrow();
    },
  );
});

describe('RFC 7030 §4.1: cacerts', () => {
  test('§4.1.2: no authentication; the chain from the issuing CA to the self-signed root', async () => {
    const answer = await estuary.est('cacerts');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/pkcs7-mime; smime-type=certs-only');
    const chain = certificatesOf(answer).map((der) => new X509Certificate(der));
    expect(chain).toHaveLength(2);
    const [issuing, root] = chain;
    if (issuing === undefined || root === undefined) throw new Error('no chain');
    expect(issuing.verify(root.publicKey)).toBe(true);
    expect(root.verify(root.publicKey)).toBe(true);
    expect(readFileSync(join(estuary.dir, 'ca/root.pem'), 'latin1')).toContain(root.toString().slice(30, 90));
  });
});

describe('RFC 7030 §4.2.1: simpleenroll', () => {
  test('§4.2.3: 200 with a certs-only message that holds the issued certificate alone', async () => {
    const answer = await estuary.enroll(wire, { password: await otp() });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/pkcs7-mime; smime-type=certs-only');
    expect(answer.headers['content-transfer-encoding']).toBe('base64');
    expect(answer.headers['transfer-encoding']).toBeUndefined();
    expect(Number(answer.headers['content-length'])).toBe(answer.body.length);
    const certificate = leaf(certificatePem(answer));
    expect(certificate.subject).toBe('CN=device-1');
    expect(certificate.subjectAltName).toBe('DNS:a.example, DNS:b.example');
    expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(key.spki);
    expect(certificate.ca).toBe(false);
  });

  test('serial numbers are positive, 64 bits or more, at most 20 octets, and differ', async () => {
    const serials = new Set<string>();
    for (let i = 0; i < 5; i++) {
      const { serialNumber } = leaf(certificatePem(await estuary.enroll(wire, { client: device })));
      expect(serialNumber).toMatch(/^[0-9A-F]{16,40}$/);
      serials.add(serialNumber);
    }
    expect(serials.size).toBe(5);
  });

  test('issue: the certificate never outlives the CA certificate', () => {
    const issuing = new X509Certificate(readFileSync(join(estuary.dir, 'ca/issuing.pem')));
    expect(Date.parse(leaf(device.cert).validTo)).toBeLessThanOrEqual(Date.parse(issuing.validTo));
  });

  test.each([
    ['P-384', 'P-384'],
    ['RSA 2048', 'rsa2048'],
    ['RSA 3072', 'rsa3072'],
    ['Ed25519', 'ed25519'],
  ] as const)('a %s key is certified', async (_, kind) => {
    const answer = await estuary.enroll(onTheWire(simpleCsr(makeKey(kind))), { password: await otp() });
    expect(answer.status, answer.text).toBe(200);
  });
});

describe('RFC 7030 §3.2.3: authentication', () => {
  test('nothing presented: a 401 that only challenges, with an empty body', async () => {
    const answer = await estuary.enroll(wire);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Basic realm="est"');
    expect(answer.headers['content-length']).toBe('0');
    expect(answer.text).toBe('');
  });

  test.each([
    ['a wrong OTP', `Basic ${Buffer.from('x:wrong-wrong-wrong-00').toString('base64')}`],
    ['Basic without a colon', `Basic ${Buffer.from('nocolon').toString('base64')}`],
    ['Basic that is no base64', 'Basic %%%'],
  ])('%s: 401 with the spec’s text and a challenge', async (_, authorization) => {
    const answer = await estuary.enroll(wire, { headers: { Authorization: authorization } });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Basic realm="est"');
    expect(answer.headers['content-type']).toBe(PLAIN);
    expect(answer.text).toBe('invalid OTP token');
    await estuary.admin('DELETE', '/admin/lockouts/address%3A127.0.0.1');
  });

  test.each(['Bearer abc', 'Digest username="x"', 'Negotiate abc'])(
    'a scheme that is not offered (%s) counts as nothing presented',
    async (authorization) => {
      const answer = await estuary.enroll(wire, { headers: { Authorization: authorization } });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Basic realm="est"');
    },
  );

  test('a consumed token: 401 invalid OTP token', async () => {
    const token = await otp();
    expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
    const again = await estuary.enroll(wire, { password: token });
    expect(again.status).toBe(401);
    expect(again.text).toBe('invalid OTP token');
  });

  test('of 50 parallel requests with one single-use token exactly one gets a certificate', async () => {
    const { id, token } = await estuary.otp();
    const answers = await Promise.all(Array.from({ length: 50 }, () => estuary.enroll(wire, { password: token })));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(new Set(statuses.filter((status) => status !== 200 && status !== 503))).toEqual(new Set([401]));
    expect((await estuary.admin('GET', `/admin/otp/${id}`)).json).toMatchObject({ uses: 1, status: 'consumed' });
    await estuary.admin('DELETE', '/admin/lockouts/address%3A127.0.0.1');
  });

  test('a token for one CA is refused by another', async () => {
    const { token } = await estuary.otp({ ca: 'lab' });
    const refused = await estuary.enroll(wire, { password: token });
    expect(refused.status).toBe(401);
    expect(refused.text).toBe('invalid OTP token');
    expect((await estuary.enroll(wire, { password: token, path: 'lab/simpleenroll' })).status).toBe(200);
  });

  test('a refused body takes no use', async () => {
    const { id, token } = await estuary.otp();
    expect((await estuary.enroll('QUJD', { password: token })).status).toBe(400);
    expect((await estuary.admin('GET', `/admin/otp/${id}`)).json['uses']).toBe(0);
    expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
  });
});

describe('RFC 7030 §4.2.2: simplereenroll', () => {
  const reenroll = (body: Buffer, client = device): Promise<Answer> =>
    estuary.enroll(onTheWire(body), { client, path: 'simplereenroll' });
  const withSans = (...sans: Buffer[]): Buffer =>
    buildCsr(key, { subject: commonName('device-1'), attributes: [extensionRequest(san(...sans))] });

  test('the same key is renewed', async () => {
    const answer = await reenroll(simpleCsr(key, 'device-1', ['a.example', 'b.example']));
    expect(answer.status, answer.text).toBe(200);
    expect(leaf(certificatePem(answer)).subject).toBe('CN=device-1');
  });

  test('a new key is certified (rekey)', async () => {
    const fresh = makeKey('P-384');
    const answer = await reenroll(simpleCsr(fresh, 'device-1', ['a.example', 'b.example']));
    expect(answer.status).toBe(200);
    expect(leaf(certificatePem(answer)).publicKey.export({ type: 'spki', format: 'der' })).toEqual(fresh.spki);
  });

  test('SANs are compared as a set, DNS names without case', async () => {
    expect((await reenroll(withSans(dns('B.example'), dns('a.EXAMPLE')))).status).toBe(200);
  });

  test('the subject is compared by decoded value, whatever the string type', async () => {
    const printable = name(attribute('2.5.4.3', printableString('device-1')));
    const csr = buildCsr(key, {
      subject: printable,
      attributes: [extensionRequest(san(dns('a.example'), dns('b.example')))],
    });
    expect((await reenroll(csr)).status).toBe(200);
  });

  test.each([
    ['another subject', simpleCsr(key, 'device-2', ['a.example', 'b.example'])],
    ['a subject in another case', simpleCsr(key, 'DEVICE-1', ['a.example', 'b.example'])],
    [
      'one attribute more',
      buildCsr(key, {
        subject: name(attribute('2.5.4.10', utf8String('O')), attribute('2.5.4.3', utf8String('device-1'))),
        attributes: [extensionRequest(san(dns('a.example'), dns('b.example')))],
      }),
    ],
    [
      'an empty subject',
      buildCsr(key, { subject: name(), attributes: [extensionRequest(san(dns('a.example'), dns('b.example')))] }),
    ],
    ['another SAN', simpleCsr(key, 'device-1', ['a.example', 'c.example'])],
    ['a SAN more', simpleCsr(key, 'device-1', ['a.example', 'b.example', 'c.example'])],
    ['a SAN less', simpleCsr(key, 'device-1', ['a.example'])],
    ['no SAN', simpleCsr(key, 'device-1')],
    ['a SAN of another kind', withSans(dns('a.example'), dns('b.example'), ip(127, 0, 0, 1))],
  ])('a CSR with %s is refused with 403', async (_, csr) => {
    const answer = await reenroll(csr);
    expect(answer.status).toBe(403);
    expect(answer.headers['content-type']).toBe(PLAIN);
    expect(answer.text).toMatch(/differs from that of the certificate being renewed/);
  });

  test('a certificate of another CA is refused with 403', async () => {
    const answer = await estuary.enroll(wire, { client: device, path: 'lab/simplereenroll' });
    expect(answer.status).toBe(403);
    expect(answer.text).toMatch(/not issued by this CA/);
  });

  test('a resumed TLS session still has its certificate', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, maxCachedSessions: 10 });
    const tls = { maxVersion: 'TLSv1.2' } as const;
    for (let i = 0; i < 3; i++) {
      const answer = await estuary.enroll(wire, {
        client: device,
        agent,
        tls,
        path: 'simplereenroll',
        headers: { Connection: 'close' },
      });
      expect(answer.status).toBe(200);
    }
    agent.destroy();
  });
});

describe('RFC 8951 §3: bodies', () => {
  const lines = (text: string, end: string): string => (text.match(/.{1,64}/g) ?? []).join(end) + end;
  const armor = (label: string): string => `-----BEGIN ${label}-----\n${lines(wire, '\n')}-----END ${label}-----\n`;

  test.each([
    ['one line', wire],
    ['one line and a newline', `${wire}\n`],
    ['lines of 64 with LF', lines(wire, '\n')],
    ['lines of 64 with CRLF', lines(wire, '\r\n')],
    ['white space anywhere', ` \t${wire.slice(0, 11)} \r\n\t ${wire.slice(11)} \n\n`],
    ['PEM', armor('CERTIFICATE REQUEST')],
    ['PEM with the older label', armor('NEW CERTIFICATE REQUEST')],
  ])('%s is accepted', async (_, body) => {
    expect((await estuary.enroll(body, { client: device })).status).toBe(200);
  });

  test.each([
    ['Content-Transfer-Encoding: base64', { 'Content-Transfer-Encoding': 'base64' }],
    ['Content-Transfer-Encoding: binary, which is ignored', { 'Content-Transfer-Encoding': 'binary' }],
    ['parameters on the media type', { 'Content-Type': 'application/pkcs10; charset=us-ascii' }],
    ['a media type in capitals', { 'Content-Type': 'APPLICATION/PKCS10' }],
  ])('%s is accepted', async (_, headers) => {
    expect((await estuary.enroll(wire, { client: device, headers })).status).toBe(200);
  });

  test('a chunked body is accepted', async () => {
    expect((await estuary.enroll(wire, { client: device, chunked: true })).status).toBe(200);
  });

  test('the answer is one line and a newline; lines of 64 for libest', async () => {
    const plain = await estuary.est('cacerts');
    expect(plain.text).toMatch(/^[A-Za-z0-9+/]+=*\n$/);
    const libest = await estuary.est('cacerts', { headers: { 'User-Agent': 'libest 1.0' } });
    expect(libest.text).toMatch(/^([A-Za-z0-9+/]{64}\n)*[A-Za-z0-9+/]{1,64}=*\n$/);
  });

  test('clients.md: header names in their usual case, at most 16 of them, below 1,024 bytes', async () => {
    const { rawHeaders } = await estuary.enroll(wire, { client: device });
    const names = rawHeaders.filter((_, i) => i % 2 === 0);
    expect(names).toEqual(expect.arrayContaining(['Content-Type', 'Content-Length', 'Content-Transfer-Encoding']));
    expect(names.length).toBeLessThanOrEqual(16);
    expect(rawHeaders.join('').length).toBeLessThan(900);
  });
});

describe('RFC 9110 §10.1.1: Expect: 100-continue', () => {
  const head = (...more: string[]): string =>
    [
      'POST /.well-known/est/simpleenroll HTTP/1.1',
      'Host: localhost',
      'Expect: 100-continue',
      'Connection: close',
      ...more,
      '',
      '',
    ].join('\r\n');
  const statusLines = (text: string): string[] => text.match(/^HTTP\/1\.1 \d{3}/gm) ?? [];
  const credentials = (token: string): string => `Authorization: Basic ${Buffer.from(`d:${token}`).toString('base64')}`;

  test.each([
    [
      'a wrong Content-Type',
      ['Content-Type: text/plain', 'Content-Length: 10', 'Authorization: Basic eDp5'],
      'HTTP/1.1 415',
    ],
    [
      'a body above the limit',
      ['Content-Type: application/pkcs10', 'Content-Length: 999999', 'Authorization: Basic eDp5'],
      'HTTP/1.1 413',
    ],
    ['no credentials', ['Content-Type: application/pkcs10', 'Content-Length: 10'], 'HTTP/1.1 401'],
  ])('%s is answered without inviting the body', async (_, headers, expected) => {
    const text = await sendRaw(estuary.server.port('est'), { ca: estuary.root }, head(...headers));
    expect(statusLines(text)).toEqual([expected]);
  });

  test('the body is invited after the cheap checks', async () => {
    const request = head(
      'Content-Type: application/pkcs10',
      `Content-Length: ${wire.length}`,
      credentials(await otp()),
    );
    const text = await sendRaw(estuary.server.port('est'), { ca: estuary.root }, request + wire);
    expect(statusLines(text)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200']);
  });
});
