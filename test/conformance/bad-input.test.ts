/**
 * At least 150 invalid inputs against the running server. Each gets the right 4xx in plain text, the server continues,
 * and the token keeps its uses.
 */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { sendRaw } from '../support/https.ts';
import { BAD_BODIES } from './bad-input-csrs.ts';

const MAX_USES = 1000;
let estuary: Estuary;
let token: { id: string; token: string };
const key = makeKey();
const wire = onTheWire(simpleCsr(key));

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      section(caSection(config), 'profile')['san'] = { allowed: ['dns', 'ip', 'email', 'uri'] };
    },
  });
  token = await estuary.otp({ max_uses: MAX_USES });
});

afterAll(async () => {
  const { json } = await estuary.admin('GET', `/admin/otp/${token.id}`);
  expect(json['uses'], 'uses taken by refused requests').toBe(0);
  const good = await estuary.enroll(wire, { password: token.token });
  expect(good.status, 'the server goes on').toBe(200);
  await estuary.stop();
});

const PLAIN = 'text/plain; charset=utf-8';
/** One sentence: no stack, no path, no line break. */
const SENTENCE = /^[^\n]{5,300}$/;

describe('a body that is no acceptable PKCS#10 gets 400', () => {
  test.each(Object.keys(BAD_BODIES))('%s', async (name) => {
    const answer = await estuary.enroll(BAD_BODIES[name] ?? '', { password: token.token });
    expect(answer.status, answer.text).toBe(400);
    expect(answer.headers['content-type']).toBe(PLAIN);
    expect(answer.text).toMatch(SENTENCE);
    expect(answer.text).not.toMatch(/node_modules|\bat \/|\.ts:|\.js:|openssl|error:/i);
  });
});

interface Head {
  readonly what: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  readonly chunked?: boolean;
  readonly status: number;
  readonly allow?: string;
}

const PKCS10 = { 'Content-Type': 'application/pkcs10' };
const big = 'A'.repeat(70_000);

const HEADS: readonly Head[] = [
  { what: 'an unknown label', path: 'nosuch/simpleenroll', headers: PKCS10, body: wire, status: 404 },
  { what: 'an unknown label on cacerts', path: 'nosuch/cacerts', status: 404 },
  { what: 'a label in another case', path: 'Devices/cacerts', status: 404 },
  { what: 'an empty label', path: '/cacerts', status: 404 },
  { what: 'a label that climbs', path: '..%2f..%2fetc/cacerts', status: 404 },
  { what: 'a label with a NUL', path: 'devices%00/cacerts', status: 404 },
  { what: 'a label of 5,000 characters', path: `${'x'.repeat(5000)}/cacerts`, status: 404 },
  { what: 'a prototype name as label', path: '__proto__/cacerts', status: 404 },
  { what: 'a prototype name as operation', path: 'constructor', status: 404 },
  { what: 'an unknown operation', path: 'simpleenrol', status: 404 },
  { what: 'an operation in another case', path: 'CACerts', status: 404 },
  { what: 'a trailing slash', path: 'cacerts/', status: 404 },
  { what: 'one segment too many', path: 'devices/cacerts/more', status: 404 },
  { what: 'a label alone', path: 'devices', status: 404 },
  { what: 'a label alone, with a slash', path: 'devices/', status: 404 },
  { what: 'broken percent-encoding', path: 'de%zzvices/cacerts', status: 400 },
  { what: 'percent-encoded bytes that are not UTF-8', path: '%ff%fe/cacerts', status: 400 },
  { what: 'GET of simpleenroll', path: 'simpleenroll', method: 'GET', status: 405, allow: 'POST' },
  {
    what: 'PUT of simpleenroll',
    path: 'simpleenroll',
    method: 'PUT',
    headers: PKCS10,
    body: wire,
    status: 405,
    allow: 'POST',
  },
  { what: 'DELETE of simplereenroll', path: 'simplereenroll', method: 'DELETE', status: 405, allow: 'POST' },
  { what: 'OPTIONS of simpleenroll', path: 'simpleenroll', method: 'OPTIONS', status: 405, allow: 'POST' },
  { what: 'PROPFIND of cacerts', path: 'cacerts', method: 'PROPFIND', status: 405, allow: 'GET, HEAD' },
  {
    what: 'POST of cacerts',
    path: 'cacerts',
    method: 'POST',
    headers: PKCS10,
    body: wire,
    status: 405,
    allow: 'GET, HEAD',
  },
  { what: 'HEAD of simpleenroll', path: 'simpleenroll', method: 'HEAD', status: 405, allow: 'POST' },
  { what: 'no Content-Type', path: 'simpleenroll', method: 'POST', body: wire, status: 400 },
  { what: 'an empty Content-Type', headers: { 'Content-Type': '' }, body: wire, status: 400 },
  { what: 'JSON', headers: { 'Content-Type': 'application/json' }, body: wire, status: 415 },
  { what: 'a form', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: wire, status: 415 },
  { what: 'the type of fullcmc', headers: { 'Content-Type': 'application/pkcs7-mime' }, body: wire, status: 415 },
  { what: 'a type with a suffix', headers: { 'Content-Type': 'application/pkcs10x' }, body: wire, status: 415 },
  {
    what: 'two types in one header',
    headers: { 'Content-Type': 'text/plain, application/pkcs10' },
    body: wire,
    status: 415,
  },
  { what: 'a type that is no type', headers: { 'Content-Type': ';;;' }, body: wire, status: 415 },
  { what: 'gzip', headers: { ...PKCS10, 'Content-Encoding': 'gzip' }, body: gzipSync(wire), status: 415 },
  {
    what: 'gzip, announced twice',
    headers: { ...PKCS10, 'Content-Encoding': 'gzip, gzip' },
    body: gzipSync(wire),
    status: 415,
  },
  { what: 'brotli', headers: { ...PKCS10, 'Content-Encoding': 'br' }, body: wire, status: 415 },
  { what: 'gzip that is not announced', headers: PKCS10, body: gzipSync(wire), status: 400 },
  { what: 'a body above the limit', headers: PKCS10, body: big, status: 413 },
  { what: 'a chunked body above the limit', headers: PKCS10, body: big, chunked: true, status: 413 },
  { what: 'an empty chunked body', headers: PKCS10, body: '', chunked: true, status: 400 },
  { what: 'an Expect that is not offered', headers: { ...PKCS10, Expect: 'a-miracle' }, body: wire, status: 417 },
];

describe('the cheap checks, each with its status', () => {
  test.each(HEADS.map((row) => [row.what, row] as const))('%s', async (_, row) => {
    const answer = await estuary.est(row.path ?? 'simpleenroll', {
      password: token.token,
      method: row.method ?? (row.body === undefined ? 'GET' : 'POST'),
      ...(row.headers === undefined ? {} : { headers: row.headers }),
      ...(row.body === undefined ? {} : { body: row.body }),
      ...(row.chunked === undefined ? {} : { chunked: row.chunked }),
    });
    expect(answer.status, answer.text).toBe(row.status);
    expect(answer.headers['allow']).toBe(row.allow);
    if (row.method === 'HEAD' || row.status === 417) return;
    expect(answer.headers['content-type']).toBe(PLAIN);
    expect(answer.text).toMatch(SENTENCE);
  });
});

const post = (...lines: string[]): string =>
  ['POST /.well-known/est/simpleenroll HTTP/1.1', ...lines, '', ''].join('\r\n');

/** Input that no HTTP client sends. The first status line of the response, or nothing if the connection just ends. */
const RAW: readonly (readonly [string, () => string, RegExp])[] = [
  ['a request line of garbage', () => 'GARBAGE\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['a TLS record inside of TLS', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['HTTP/9.9', () => 'GET /.well-known/est/cacerts HTTP/9.9\r\nHost: x\r\n\r\n', /^HTTP\/1\.1 (400|505) /],
  ['an HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^HTTP\/1\.1 (400|505) /],
  ['no Host header', () => 'GET /.well-known/est/cacerts HTTP/1.1\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['a space before the colon', () => post('Host: x', 'Content-Length : 5'), /^HTTP\/1\.1 400 /],
  ['a header line without colon', () => post('Host: x', 'nonsense'), /^HTTP\/1\.1 400 /],
  ['a NUL in a header', () => post('Host: x', 'X-A: a\0b'), /^HTTP\/1\.1 400 /],
  [
    'a bare line feed smuggling a header',
    () => post('Host: x', 'X-A: a\nContent-Length: 5\nX-B: b'),
    /^HTTP\/1\.1 400 /,
  ],
  [
    'two different Content-Lengths',
    () => post('Host: x', 'Content-Length: 5', 'Content-Length: 6'),
    /^HTTP\/1\.1 400 /,
  ],
  ['a negative Content-Length', () => post('Host: x', 'Content-Length: -5'), /^HTTP\/1\.1 400 /],
  ['a Content-Length that is no number', () => post('Host: x', 'Content-Length: five'), /^HTTP\/1\.1 400 /],
  ['a Content-Length beyond 64 bits', () => post('Host: x', `Content-Length: ${'9'.repeat(30)}`), /^HTTP\/1\.1 400 /],
  [
    'Content-Length and Transfer-Encoding',
    () => post('Host: x', 'Content-Length: 5', 'Transfer-Encoding: chunked'),
    /^HTTP\/1\.1 400 /,
  ],
  [
    'an unknown transfer coding',
    () => post('Host: x', 'Content-Type: application/pkcs10', 'Transfer-Encoding: gzip, chunked'),
    /^HTTP\/1\.1 400 /,
  ],
  [
    'chunked, but not last',
    () => post('Host: x', 'Content-Type: application/pkcs10', 'Transfer-Encoding: chunked, gzip'),
    /^HTTP\/1\.1 400 /,
  ],
  [
    'a chunk size that is no number',
    () =>
      `${post('Host: x', 'Content-Type: application/pkcs10', 'Authorization: Basic eDp5', 'Transfer-Encoding: chunked')}zz\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  [
    'a chunk size beyond 64 bits',
    () =>
      `${post('Host: x', 'Content-Type: application/pkcs10', 'Authorization: Basic eDp5', 'Transfer-Encoding: chunked')}${'f'.repeat(20)}\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  [
    'headers of 97 KiB, above the limit of 96',
    () => post('Host: x', `X-A: ${'a'.repeat(97 * 1024)}`),
    /^HTTP\/1\.1 431 /,
  ],
];

describe('RFC 9112: what is no proper HTTP is refused in plain text', () => {
  async function refused(server: Estuary, bytes: string, expected: RegExp): Promise<void> {
    const text = await sendRaw(server.server.port('est'), { ca: server.root }, Buffer.from(bytes, 'latin1'));
    expect(text).toMatch(expected);
    expect(text).toMatch(/\r\ncontent-type: text\/plain; charset=utf-8\r\n/i);
  }

  test.each(RAW)('%s', async (_, bytes, expected) => refused(estuary, bytes(), expected));

  test('a body that never comes, and a head that never ends', async () => {
    const impatient = await Estuary.start({
      configure: (config) => void Object.assign(section(config, 'server'), { request_timeout: 2, headers_timeout: 2 }),
    });
    onTestFinished(() => impatient.stop().then(() => undefined));
    const body = ['Content-Type: application/pkcs10', 'Authorization: Basic eDp5', 'Content-Length: 100'];
    await refused(impatient, post('Host: x', ...body), /^HTTP\/1\.1 408 /);
    const head = 'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\n';
    await refused(impatient, head, /^HTTP\/1\.1 408 /);
  });
});

test('a refused request does not break the next one on the same connection', async () => {
  const bad = 'QUFB';
  const head = (path: string, length: number): string =>
    `POST /.well-known/est/${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\n` +
    `Authorization: Basic ${Buffer.from(`d:${token.token}`).toString('base64')}\r\nContent-Length: ${length}\r\n`;
  const bytes =
    `${head('simpleenroll', bad.length)}\r\n${bad}` +
    `${head('nosuch/simpleenroll', bad.length)}\r\n${bad}` +
    'GET /.well-known/est/cacerts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const text = await sendRaw(estuary.server.port('est'), { ca: estuary.root }, bytes);
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400', 'HTTP/1.1 404', 'HTTP/1.1 200']);
});
