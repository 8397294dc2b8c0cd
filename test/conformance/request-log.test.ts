/** Every answer carries `X-Request-Id`, which its line of log and its audit records carry too. */
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { call, sendRaw } from '../support/https.ts';
import { openTcp } from '../support/slow-clients.ts';

type Line = Readonly<Record<string, unknown>>;
type Listener = 'est' | 'admin' | 'publication';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const FIELDS = [
  'request_id',
  'address',
  'operation',
  'ca',
  'requester',
  'method',
  'status',
  'code',
  'serial',
  'ms',
] as const;

const key = makeKey();
const wire = onTheWire(simpleCsr(key, 'device-1'));
let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure(config) {
      const base = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), base);
      Object.assign(section(config, 'server'), { headers_timeout: 5, request_timeout: 6 });
    },
  });
});
afterAll(() => estuary.stop());

const lines = (): readonly Line[] => estuary.server.log();

/** The line of a request, which is written when the answer is sent. */
async function lineOf(id: unknown): Promise<Line> {
  const found = (): Line[] => lines().filter(({ msg, request_id }) => msg === 'request' && request_id === id);
  await expect.poll(found).toHaveLength(1);
  const [line = {}] = found();
  for (const field of FIELDS) expect(line).toHaveProperty(field);
  expect(line['address']).toBe('127.0.0.1');
  expect(typeof line['ms']).toBe('number');
  return line;
}

/** The types of the audit records with an id. */
async function recordsOf(id: unknown): Promise<unknown[]> {
  const { json } = await estuary.admin('GET', '/admin/audit?limit=1000');
  return itemsOf(json)
    .filter(({ request_id }) => request_id === id)
    .map(({ type, outcome }) => `${String(type)} ${String(outcome)}`);
}

test('an enrollment has one id in its answer, its line of log and its audit records', async () => {
  const { token } = await estuary.otp();
  const answer = await estuary.enroll(wire, { password: token });
  expect(answer.status).toBe(200);
  expect(answer.rawHeaders).toContain('X-Request-Id');
  const id = answer.headers['x-request-id'];
  expect(id).toMatch(UUID);
  const line = await lineOf(id);
  expect(line).toMatchObject({
    listener: 'est',
    operation: 'simpleenroll',
    ca: 'devices',
    requester: 'device-1',
    method: 'otp',
    status: 200,
    code: null,
  });
  const { json } = await estuary.admin('GET', '/admin/certificates');
  expect(itemsOf(json).at(-1)).toMatchObject({ request_id: id, serial: line['serial'] });
  expect(await recordsOf(id)).toEqual([
    'auth.otp success',
    'request.received success',
    'otp.used success',
    'ca.signature success',
    'certificate.issued success',
  ]);
});

test('a wrong password has its id in the log and in the record of the failure', async () => {
  const answer = await estuary.enroll(wire, { password: 'x'.repeat(20) });
  expect(answer.status).toBe(401);
  const id = answer.headers['x-request-id'];
  expect(await lineOf(id)).toMatchObject({ requester: null, method: 'otp', status: 401, code: 'OTP_INVALID' });
  expect(await recordsOf(id)).toEqual(['auth.otp failure']);
});

test("an administrator's call has its id in the log and in every record that it makes", async () => {
  const headers = { Authorization: `Bearer ${estuary.adminToken}`, 'Content-Type': 'application/json' };
  const at = { port: estuary.server.port('admin'), tls: { ca: estuary.root } };
  const body = JSON.stringify({ client_id: 'x' });
  const answer = await call({ ...at, path: '/admin/otp', method: 'POST', headers, body });
  expect(answer.status).toBe(201);
  const id = answer.headers['x-request-id'];
  expect(id).toMatch(UUID);
  const line = await lineOf(id);
  expect(line).toMatchObject({ listener: 'admin', operation: 'POST /admin/otp', method: 'bearer', status: 201 });
  expect(line['requester']).toEqual(expect.any(String));
  expect((await recordsOf(id)).toSorted()).toEqual(['admin.access success', 'otp.created success']);
  const refused = await call({ ...at, path: '/admin/otp', headers: { Authorization: 'Bearer nobody' } });
  expect(await lineOf(refused.headers['x-request-id'])).toMatchObject({
    status: 401,
    code: 'ADMIN_AUTHENTICATION_REQUIRED',
  });
  expect(await recordsOf(refused.headers['x-request-id'])).toEqual(['auth.admin failure']);
});

/** The bytes of a whole request, and what it is refused with; the paths of the three listeners differ. */
const REFUSED: readonly [what: string, request: string, statuses: readonly number[]][] = [
  ['an unknown path', 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', [404]],
  ['an invalid path', 'GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', [400]],
  ['no Host', 'GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n', [400]],
  ['two Host headers', 'GET /nowhere HTTP/1.1\r\nHost: x\r\nhost: x\r\nConnection: close\r\n\r\n', [400]],
  ['an expectation', 'GET /nowhere HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n', [417]],
  ['no HTTP', 'nonsense\r\n\r\n', [400]],
  ['unbounded headers', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(120_000)}\r\n\r\n`, [431]],
  ['a header that stays away', 'GET /nowhere HTTP/1.1\r\nHost: x\r\n', [408]],
  [
    'a body that stays away',
    'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\nContent-Length: 900\r\n\r\nMII',
    [404, 408],
  ],
  [
    'a body that is too large',
    'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\nContent-Length: 9000000\r\nConnection: close\r\n\r\n',
    [404, 413],
  ],
  [
    'a wrong method',
    'PUT /.well-known/est/cacerts HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    [404, 405],
  ],
  [
    'a wrong method for OCSP',
    'PUT /ocsp/devices HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    [404, 405],
  ],
  ['an HTTP/1.0 request', 'GET /.well-known/est/cacerts HTTP/1.0\r\n\r\n', [200, 404]],
];

async function answerTo(listener: Listener, request: string): Promise<string> {
  const port = estuary.server.port(listener);
  if (listener !== 'publication') return sendRaw(port, { ca: estuary.root }, request);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connectTcp(port, '127.0.0.1', () => socket.write(request));
    socket.setTimeout(60_000, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', reject).on('close', () => resolve(text));
  });
}

describe.each(['est', 'admin', 'publication'] as const)('on the %s listener every answer has its id', (listener) => {
  test.each(REFUSED)('%s', async (_, request, statuses) => {
    const answer = await answerTo(listener, request);
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1]);
    expect(statuses).toContain(status);
    const ids = [...answer.matchAll(/^x-request-id: (.*)\r$/gim)].map(([, id]) => id);
    expect(ids).toEqual([expect.stringMatching(UUID)]);
    const line = await lineOf(ids[0]);
    expect(line).toMatchObject({ listener, status });
    expect(line['code'] === null).toBe(status === 200);
  });
});

test('the publication listener tells the operation and the CA', async () => {
  const port = estuary.server.port('publication');
  const id = await new Promise<unknown>((resolve, reject) => {
    httpRequest({ host: '127.0.0.1', port, path: '/ca/devices.cer' }, (response) => {
      response.resume();
      resolve(response.headers['x-request-id']);
    })
      .on('error', reject)
      .end();
  });
  expect(await lineOf(id)).toMatchObject({ operation: 'ca', ca: 'devices', status: 200, requester: null });
});

test("clients.md: strongSwan's 1,024 octets and libest's 16 headers still hold every answer's head", async () => {
  const { token } = await estuary.otp();
  for (const answer of [
    await estuary.enroll(wire, { password: token }),
    await estuary.enroll(wire),
    await estuary.enroll(wire, { password: 'y'.repeat(20) }),
    await estuary.est('cacerts'),
  ]) {
    expect(answer.rawHeaders.length / 2).toBeLessThanOrEqual(16);
    expect(answer.rawHeaders.join(': \r\n').length).toBeLessThan(1000);
  }
});

test('failed handshakes name the address, and those of one address share a line that counts them', async () => {
  const port = estuary.server.port('est');
  const failures = (): readonly Line[] => lines().filter(({ msg }) => msg === 'TLS handshake failed');
  for (let i = 0; i < 12; i++) {
    await new Promise<void>((resolve) => {
      const socket = connectTcp(port, '127.0.0.1', () => socket.write('no TLS at all, not even a little\r\n\r\n'));
      socket.on('error', () => undefined).on('close', () => resolve());
    });
  }
  await expect.poll(() => failures().at(-1)).toHaveProperty('repeated', 7);
  expect(failures()).toHaveLength(6);
  for (const line of failures()) expect(line).toMatchObject({ listener: 'est', address: '127.0.0.1' });
});

test('a client that disconnects before the response gets a log line without a status', async () => {
  const { token } = await estuary.otp();
  const tcp = await openTcp(estuary.server.port('est'));
  const secured = connectTls({ socket: tcp, servername: 'localhost', ca: estuary.root });
  secured.on('error', () => undefined);
  secured.write(
    'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\nContent-Length: 900\r\n' +
      `Authorization: Basic ${Buffer.from(`d:${token}`).toString('base64')}\r\nExpect: 100-continue\r\n\r\n`,
  );
  // "100 Continue": the server has read the head.
  await once(secured, 'data');
  tcp.resetAndDestroy();
  const gone = (): readonly Line[] => lines().filter(({ msg, status }) => msg === 'request' && status === null);
  await expect.poll(gone).toHaveLength(1);
});
