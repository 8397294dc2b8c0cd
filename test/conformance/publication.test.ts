/**
 * What relying parties fetch over plain HTTP, checked with openssl.
 *
 * Longer than other files: its cases share a server and what it has published.
 */
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate, parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { parseCertificateList } from '../../src/pki/x509/crl.ts';
import { parseAuthorityInfoAccess, parseCrlDistributionPoints } from '../../src/pki/x509/extensions.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { runAny } from '../support/command.ts';
import { untilInCrl } from '../support/crls.ts';
import { makeKey } from '../support/csr.ts';
import { Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { ocspRequest } from '../support/ocsp.ts';

const BASE = 'http://pki.example.test/x';
const INTERVAL = 10;
let estuary: Estuary;
let url: string;
let good: ClientIdentity;
let bad: ClientIdentity;

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure(config) {
      Object.assign(section(config, 'publication'), {
        enabled: true,
        host: '127.0.0.1',
        port: 0,
        base_url: `${BASE}/`,
        crl_interval: INTERVAL,
      });
    },
  });
  url = `http://127.0.0.1:${estuary.server.port('publication')}`;
  good = await estuary.enrolled(makeKey(), 'good');
  bad = await estuary.enrolled(makeKey(), 'bad');
  save('good.pem', good.cert);
  save('bad.pem', bad.cert);
  save('ca.cer', (await get('/ca/devices.cer')).body);
  await run('x509', '-inform', 'DER', '-in', file('ca.cer'), '-out', file('issuer.pem'));
  save('chain.pem', readFileSync(file('issuer.pem'), 'latin1') + estuary.root);
});
afterAll(() => estuary.stop());

const file = (name: string): string => join(estuary.dir, name);
const save = (name: string, bytes: string | Buffer): void => writeFileSync(file(name), bytes);
const hex = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber;

async function get(path: string, init: RequestInit = {}): Promise<{ status: number; headers: Headers; body: Buffer }> {
  const response = await fetch(url + path, { signal: AbortSignal.timeout(60_000), ...init });
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
}

/** openssl's stdout and stderr, whatever its exit status. */
async function run(...args: readonly string[]): Promise<string> {
  return (await runAny('openssl', args)).output;
}

const ocsp = (...args: readonly string[]): Promise<string> =>
  run('ocsp', '-issuer', file('issuer.pem'), '-CAfile', file('chain.pem'), '-url', `${url}/ocsp/devices`, ...args);

const crlText = (der: Buffer): Promise<string> => {
  save('latest.crl', der);
  return run(
    'crl',
    '-inform',
    'DER',
    '-in',
    file('latest.crl'),
    '-noout',
    '-text',
    '-verify',
    '-CAfile',
    file('chain.pem'),
  );
};

const revoke = (who: ClientIdentity, order: object) =>
  estuary.admin('POST', `/admin/certificates/${hex(who)}/revoke`, order);

test('issued certificates name the CRL, the OCSP responder and the CA certificate', () => {
  const { extensions } = parseCertificate(new X509Certificate(good.cert).raw);
  const value = (oid: string): Buffer => extensions.find((each) => each.oid === oid)?.value ?? Buffer.alloc(0);
  expect(parseCrlDistributionPoints(value(OID.cRLDistributionPoints))).toEqual([`${BASE}/crl/devices.crl`]);
  expect(parseAuthorityInfoAccess(value(OID.authorityInfoAccess))).toEqual({
    ocsp: [`${BASE}/ocsp/devices`],
    caIssuers: [`${BASE}/ca/devices.cer`],
  });
});

test('GET /ca/{label}.cer is the CA certificate', async () => {
  const { status, headers, body } = await get('/ca/devices.cer');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/pkix-cert');
  expect(await run('verify', '-CAfile', file('issuer.pem'), '-partial_chain', file('good.pem'))).toContain(
    'good.pem: OK',
  );
  expect(new X509Certificate(body).subject).toContain('Devices CA');
});

describe('revocation, seen by openssl', () => {
  let before: Buffer;
  test('before: OCSP says good, with a nonce that comes back, and the CRL verifies', async () => {
    const answer = await ocsp('-cert', file('good.pem'), '-cert', file('bad.pem'));
    expect(answer).toContain('Response verify OK');
    expect(answer).toContain('good.pem: good');
    expect(answer).toContain('bad.pem: good');
    expect(answer).not.toMatch(/WARNING/);
    const { status, headers, body } = await get('/crl/devices.crl');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/pkix-crl');
    expect(await crlText(body)).toContain('verify OK');
  });

  test('RFC 5019 §2.2.3: a serial number that was never issued is unauthorized, and so is one of another issuer', async () => {
    expect(await ocsp('-serial', '0x1234')).toContain('Responder Error: unauthorized');
    const elsewhere = await run(
      ...['ocsp', '-issuer', file('ca/root.pem'), '-CAfile', file('chain.pem'), '-cert', file('good.pem')],
      ...['-url', `${url}/ocsp/devices`],
    );
    expect(elsewhere).toContain('Responder Error: unauthorized');
  });

  test('a serial number that was never issued is unknown, next to an issued one', async () => {
    const answer = await ocsp('-cert', file('good.pem'), '-serial', '0x1234');
    expect(answer).toContain('Response verify OK');
    expect(answer).toContain('good.pem: good');
    expect(answer).toContain('0x1234: unknown');
  });

  test('a revocation is in OCSP at once, with time and reason, whatever was asked before', async () => {
    const path = await ocspPath('bad.pem');
    expect(await status((await get(path)).body, 'bad.pem')).toContain('bad.pem: good');
    before = (await get('/crl/devices.crl')).body;
    expect((await revoke(bad, { reason: 'keyCompromise', invalidity_date: '2026-01-02T03:04:05Z' })).status).toBe(200);
    const answer = await ocsp('-cert', file('bad.pem'), '-cert', file('good.pem'));
    expect(answer).toMatch(/bad\.pem: revoked\s+.*\s*.*\s+Reason: keyCompromise/);
    expect(answer).toContain('Revocation Time:');
    expect(answer).toContain('good.pem: good');
    expect(await status((await get(path)).body, 'bad.pem')).toContain('bad.pem: revoked');
  });

  test('and in the CRL within crl_interval, in a list with a higher number', async () => {
    const body = await untilInCrl(async () => (await get('/crl/devices.crl')).body, hex(bad));
    const text = await crlText(body);
    expect(text).toContain('verify OK');
    expect(text).toContain(`Serial Number: ${hex(bad)}`);
    expect(text).toContain('Key Compromise');
    expect(text).toMatch(/Invalidity Date:\s+Jan {2}2 03:04:05 2026 GMT/);
    expect(crlNumber(text)).toBeGreaterThan(crlNumber(await crlText(before)));
    const { thisUpdate, nextUpdate } = parseCertificateList(body);
    // Up to a minute of it is before the signing, for relying parties whose clock is late.
    const seconds = ((nextUpdate?.getTime() ?? 0) - thisUpdate.getTime()) / 1000;
    expect(seconds).toBeGreaterThanOrEqual(INTERVAL);
    expect(seconds).toBeLessThanOrEqual(INTERVAL + 60);
    const checked = (name: string) =>
      run(
        'verify',
        '-crl_check',
        // The list expires within seconds.
        '-attime',
        String(Math.ceil(thisUpdate.getTime() / 1000)),
        '-CRLfile',
        file('crl.pem'),
        '-partial_chain',
        '-trusted',
        file('issuer.pem'),
        file(name),
      );
    save('latest.crl', body);
    save('crl.pem', await run('crl', '-inform', 'DER', '-in', file('latest.crl')));
    expect(await checked('good.pem')).toContain('good.pem: OK');
    expect(await checked('bad.pem')).toContain('certificate revoked');
  });

  test('crl.issued is in the audit log, and the number survives a restart', async () => {
    const { json } = await estuary.admin('GET', '/admin/audit?type=crl.issued');
    expect(JSON.stringify(json)).toMatch(/"ca":"devices".*number 1,/);
    const before = crlNumber(await crlText((await get('/crl/devices.crl')).body));
    await estuary.server.stop();
    await estuary.restart();
    url = `http://127.0.0.1:${estuary.server.port('publication')}`;
    expect(crlNumber(await crlText((await get('/crl/devices.crl')).body))).toBeGreaterThanOrEqual(before);
  });
});

const crlNumber = (text: string): number => Number(/CRL Number:\s+(\d+)/.exec(text)?.[1]);

/** The GET form of a request about a certificate, without a nonce. */
async function ocspPath(name: string): Promise<string> {
  await run('ocsp', '-issuer', file('issuer.pem'), '-cert', file(name), '-no_nonce', '-reqout', file('request.der'));
  return `/ocsp/devices/${encodeURIComponent(readFileSync(file('request.der')).toString('base64'))}`;
}

/** What openssl reads out of a response. */
function status(response: Buffer, name: string): Promise<string> {
  save('response.der', response);
  const chain = ['-issuer', file('issuer.pem'), '-CAfile', file('chain.pem')];
  return run('ocsp', '-respin', file('response.der'), ...chain, '-cert', file(name), '-no_nonce');
}

test('RFC 6960 appendix A.1: GET with base64, escaped or not, is cacheable as RFC 5019 §6.2 says', async () => {
  const path = await ocspPath('good.pem');
  const { status: code, headers, body } = await get(path);
  expect(code).toBe(200);
  expect(headers.get('content-type')).toBe('application/ocsp-response');
  const said = await status(body, 'good.pem');
  for (const words of ['Response verify OK', 'good.pem: good']) expect(said).toContain(words);
  expect(headers.get('cache-control')).toMatch(/^max-age=\d+, public, no-transform, must-revalidate$/);
  for (const name of ['last-modified', 'expires']) expect(Date.parse(headers.get(name) ?? ''), name).not.toBeNaN();
  expect((await get(decodeURIComponent(path))).status).toBe(200);
});

test('a response to a POST is not for caches', async () => {
  const body = readFileSync(file('request.der'));
  const headers = { 'content-type': 'application/ocsp-request' };
  const answer = await get('/ocsp/devices', { method: 'POST', headers, body: new Uint8Array(body) });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('cache-control')).toBe('no-store');
});

test('ETag and Last-Modified save who has it already the transfer', async () => {
  const { headers, body } = await get('/ca/devices.cer');
  expect(headers.get('etag')).toBe(`"${createHash('sha256').update(body).digest('base64url')}"`);
  const etag = headers.get('etag') ?? '';
  const since = headers.get('last-modified') ?? '';
  for (const condition of [
    { 'if-none-match': etag },
    { 'if-none-match': `"x", W/${etag}` },
    { 'if-modified-since': since },
  ])
    expect((await get('/ca/devices.cer', { headers: condition })).status).toBe(304);
  const other = { 'if-none-match': '"other"', 'if-modified-since': since };
  expect((await get('/ca/devices.cer', { headers: other })).status).toBe(200);
});

test.each([
  ['GET', '/', 404],
  ['GET', '/crl/nowhere.crl', 404],
  ['GET', '/crl/devices', 404],
  ['GET', '/crl/.crl', 404],
  ['GET', '/crl/devices.pem', 404],
  ['GET', '/ca/nowhere.cer', 404],
  ['GET', '/ca/..%2f..%2fest.toml', 404],
  ['GET', '/ca/%00.cer', 404],
  ['GET', '/ca/%ff.cer', 400],
  ['GET', '/ocsp/nowhere/MAA=', 404],
  ['GET', '/ocsp/devices', 405],
  ['DELETE', '/crl/devices.crl', 405],
  ['POST', '/ca/devices.cer', 405],
  ['GET', '/.well-known/est/cacerts', 404],
  ['GET', '/admin/otp', 404],
] as const)('%s %s is %i in plain text', async (method, path, code) => {
  const { status: got, headers } = await get(path, { method });
  expect(got).toBe(code);
  expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
  if (code === 405) expect(headers.get('allow')).toMatch(/POST|GET/);
});

test('a label that is too long is 414', async () => {
  expect((await get(`/crl/${'x'.repeat(2000)}.crl`)).status).toBe(414);
});

test('POST of another type is 415, one that is too large 413', async () => {
  const post = (type: string, body: string) =>
    get('/ocsp/devices', { method: 'POST', headers: { 'content-type': type }, body });
  expect((await post('application/json', '{}')).status).toBe(415);
  expect((await post('application/ocsp-request', 'x'.repeat(20_000))).status).toBe(413);
});

test.each(['AAAA', 'not base64!', 'MAA=', 'MIIB'])('RFC 6960 §2.3: "%s" is answered malformedRequest', async (text) => {
  const { status: code, body, headers } = await get(`/ocsp/devices/${encodeURIComponent(text)}`);
  expect(code).toBe(200);
  expect(headers.get('content-type')).toBe('application/ocsp-response');
  expect(body.toString('hex')).toBe('30030a0101');
});

test.each<[string, (base64: string) => string]>([
  ['without escapes', (base64) => base64],
  ['escaped twice', (base64) => encodeURIComponent(encodeURIComponent(base64))],
  ['with lower-case escapes', (base64) => encodeURIComponent(base64).replace(/%../g, (code) => code.toLowerCase())],
  ['without padding', (base64) => base64.replace(/=+$/, '')],
  ['in the URL alphabet', (base64) => base64.replaceAll('+', '-').replaceAll('/', '_')],
  ['with a slash before and after it', (base64) => `/${base64}/`],
  ['with spaces for plus signs', (base64) => base64.replaceAll('+', '%20')],
  ['in lines', (base64) => base64.replace(/.{64}/g, '$&%0A')],
])('RFC 6960 appendix A.1: GET of base64 %s is answered', async (_, form) => {
  const [certificate] = parsePemCertificates(readFileSync(file('issuer.pem'), 'latin1'));
  if (certificate === undefined) throw new Error('no CA certificate');
  // Both signs occur in it.
  const nonce = Buffer.from('fbeffffbefff', 'hex');
  const der = ocspRequest({ certificate }, [hex(good).toLowerCase()], nonce);
  const answer = await get(`/ocsp/devices/${form(der.toString('base64'))}`);
  expect(answer.body.length).toBeGreaterThan(100);
  expect(answer.body.includes(nonce)).toBe(true);
});

test.each([0, 129])('RFC 9654 §2.1: a nonce of %i octets is answered malformedRequest', async (octets) => {
  const [certificate] = parsePemCertificates(readFileSync(file('issuer.pem'), 'latin1'));
  if (certificate === undefined) throw new Error('no CA certificate');
  const der = ocspRequest({ certificate }, [hex(good).toLowerCase()], Buffer.alloc(octets));
  const post = { method: 'POST', headers: { 'content-type': 'application/ocsp-request' }, body: new Uint8Array(der) };
  for (const answer of [
    await get('/ocsp/devices', post),
    await get(`/ocsp/devices/${encodeURIComponent(der.toString('base64'))}`),
  ])
    expect([answer.status, answer.body.toString('hex')]).toEqual([200, '30030a0101']);
});

test('enrollments continue during a flood of requests with made-up serial numbers and nonces', async () => {
  await run(
    'ocsp',
    '-issuer',
    file('issuer.pem'),
    '-serial',
    `0x${'7f'.repeat(16)}`,
    '-no_nonce',
    '-reqout',
    file('made-up.der'),
  );
  await run('ocsp', '-issuer', file('issuer.pem'), '-cert', file('good.pem'), '-reqout', file('nonce.der'));
  const made = readFileSync(file('made-up.der'));
  const nonce = readFileSync(file('nonce.der'));
  const agent = new Agent({ keepAlive: true });
  let running = true;
  const answers = new Set<string>();
  const flood = async (next: () => Buffer): Promise<void> => {
    while (running) answers.add(kindOf(await post(agent, next())));
  };
  const madeUp = (): Buffer => Buffer.concat([made.subarray(0, -15), randomBytes(15)]);
  const floods = Array.from({ length: 64 }, (_, n) => flood(n % 4 === 0 ? () => nonce : madeUp));
  for (let n = 0; n < 10; n++) await estuary.enrolled(makeKey(), `during-${n}`);
  running = false;
  await Promise.all(floods);
  agent.destroy();
  expect([...answers].filter((kind) => kind !== 'tryLater').sort()).toEqual(['successful', 'unauthorized']);
});

function kindOf(response: Buffer): string {
  const start = response.toString('hex', 0, 7);
  return (
    { '30030a0106': 'unauthorized', '30030a0103': 'tryLater' }[start] ??
    (/^308.(..){1,2}0a0100/.test(start) ? 'successful' : start)
  );
}

/** Posts an OCSP request on a connection that is kept. */
function post(agent: Agent, body: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/ocsp-request', 'content-length': body.length };
    const outgoing = request(`${url}/ocsp/devices`, { method: 'POST', agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks)));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
