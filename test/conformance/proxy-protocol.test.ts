/** `[est] proxy_protocol`. The device's address is the header's, for lockout, limits, audit and log. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { untilLogged } from '../support/server-process.ts';
import { socketsOf } from '../support/slow-clients.ts';
import { pause, until } from '../support/until.ts';

const BALANCER = '127.0.0.7';
const V2 = '0d0a0d0a000d0a515549540a';
const v1 = (address: string): Buffer => Buffer.from(`PROXY TCP4 ${address} 192.0.2.200 40000 443\r\n`, 'latin1');
const v2 = (address: string, command = '21'): Buffer =>
  Buffer.concat([
    Buffer.from(`${V2}${command}11000c`, 'hex'),
    Buffer.from([...address.split('.').map(Number), 192, 0, 2, 200, 0x9c, 0x40, 0x01, 0xbb]),
  ]);

const wire = onTheWire(simpleCsr(makeKey(), 'device-1'));
let estuary: Estuary;

beforeAll(async () => {
  // A test counts its sockets.
  estuary = await Estuary.start({
    built: true,
    configure(config) {
      section(config, 'est')['proxy_protocol'] = [`${BALANCER}/32`, '2001:db8::/64'];
      Object.assign(section(config, 'server'), { handshake_timeout: 10, max_connections_per_address: 4 });
      Object.assign(section(config, 'otp'), { max_failures: 2 });
    },
  });
});
afterAll(() => estuary.stop());

const tcp = (localAddress: string): Socket =>
  connect({ host: '127.0.0.1', port: estuary.server.port('est'), localAddress }).on('error', () => undefined);

/** What the server says to a request behind these octets, sent piece by piece; empty: it closed the connection. */
function ask(from: string, pieces: readonly Buffer[], request: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = tcp(from);
    const end = (): void => {
      socket.destroy();
      resolve(text);
    };
    socket.setNoDelay(true).on('close', end);
    void (async () => {
      for (const piece of pieces) {
        await new Promise((sent) => socket.write(piece, sent));
        if (pieces.length > 1) await pause(5);
      }
      const secured = connectTls({ socket, servername: 'localhost', ca: estuary.root });
      secured.on('error', end).on('close', end);
      secured.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
      secured.write(request);
    })();
    socket.setTimeout(60_000, end);
  });
}

const CACERTS = 'GET /.well-known/est/cacerts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const enroll = (password: string): string =>
  'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/pkcs10\r\n' +
  `Authorization: Basic ${Buffer.from(`device:${password}`).toString('base64')}\r\nContent-Length: ${wire.length}\r\n\r\n${wire}`;

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);

/** The address in the line of log of an answer. */
async function loggedAddress(answer: string): Promise<unknown> {
  const id = /^X-Request-Id: (.*)\r$/m.exec(answer)?.[1];
  return (await untilLogged(estuary.server, { msg: 'request', request_id: id }))['address'];
}

const bytewise = (bytes: Buffer): Buffer[] => [...bytes].map((octet) => Buffer.from([octet]));

describe('a listed balancer', () => {
  test.each<[what: string, pieces: Buffer[], address: string]>([
    ['version 1', [v1('192.0.2.1')], '192.0.2.1'],
    ['version 2', [v2('192.0.2.2')], '192.0.2.2'],
    ['version 1, octet by octet', bytewise(v1('192.0.2.3')), '192.0.2.3'],
    ['version 2, octet by octet', bytewise(v2('192.0.2.4')), '192.0.2.4'],
    ['UNKNOWN', [Buffer.from('PROXY UNKNOWN\r\n', 'latin1')], BALANCER],
    ['LOCAL', [v2('192.0.2.5', '20')], BALANCER],
  ])("%s: the address is the header's, or the connection's where it names none", async (_, pieces, address) => {
    const answer = await ask(BALANCER, pieces, CACERTS);
    expect(statusOf(answer)).toBe(200);
    expect(await loggedAddress(answer)).toBe(address);
  });

  test.each<[what: string, pieces: Buffer[]]>([
    ['no header', []],
    ['a wrong one', [Buffer.from('PROXY TCP4 nowhere nobody 1 2\r\n', 'latin1')]],
    ['one too long', [Buffer.from(`PROXY UNKNOWN ${'x'.repeat(5000)}`, 'latin1')]],
    ['half of one', [v2('192.0.2.1').subarray(0, 20)]],
    ['two of them', [v1('192.0.2.1'), v1('192.0.2.2')]],
  ])('is refused with %s', async (_, pieces) => {
    expect(await ask(BALANCER, pieces, CACERTS)).toBe('');
  });

  test("is rid of within the handshake's time when it says nothing, and costs nothing then", async () => {
    const before = socketsOf(estuary.server.pid);
    const silent = Array.from({ length: 20 }, () => tcp(BALANCER));
    await until('they are open', () => socketsOf(estuary.server.pid) >= before + 20);
    expect(statusOf(await ask(BALANCER, [v1('192.0.2.9')], CACERTS))).toBe(200);
    await until('they are gone', () => socketsOf(estuary.server.pid) <= before);
    for (const socket of silent) socket.destroy();
    const refused = await untilLogged(estuary.server, { msg: 'PROXY header rejected' });
    expect(refused).toMatchObject({ listener: 'est', address: BALANCER });
  });
});

test.each([v1('192.0.2.1'), v2('192.0.2.1')])('from elsewhere a header is refused', async (header) => {
  expect(await ask('127.0.0.8', [header], CACERTS)).toBe('');
  expect(statusOf(await ask('127.0.0.8', [], CACERTS))).toBe(200);
});

test('lockout, audit and limits of connections count the device, not the balancer', async () => {
  for (let i = 0; i < 3; i++)
    expect(statusOf(await ask(BALANCER, [v1('192.0.2.66')], enroll('x'.repeat(20))))).toBe(401);
  expect(await ask(BALANCER, [v2('192.0.2.66')], enroll('x'.repeat(20)))).toContain('too many failures, locked out');
  const { token } = await estuary.otp();
  expect(statusOf(await ask(BALANCER, [v1('192.0.2.67')], enroll(token)))).toBe(200);
  const { json: lockouts } = await estuary.admin('GET', '/admin/lockouts');
  expect(itemsOf(lockouts).map(({ key }) => key)).toEqual(['address:192.0.2.66']);
  const { json: audit } = await estuary.admin('GET', '/admin/audit?type=certificate.issued');
  expect(itemsOf(audit).at(-1)).toMatchObject({ address: '192.0.2.67' });

  const held = Array.from({ length: 4 }, () =>
    tcp(BALANCER).on('connect', function (this: Socket) {
      this.write(v1('192.0.2.70'));
    }),
  );
  await vi.waitFor(async () => expect(await ask(BALANCER, [v1('192.0.2.70')], CACERTS)).toBe(''), { timeout: 60_000 });
  expect(statusOf(await ask(BALANCER, [v1('192.0.2.71')], CACERTS))).toBe(200);
  for (const socket of held) socket.destroy();
});
