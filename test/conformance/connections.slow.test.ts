/** Connections that are silent, stop halfway or are refused end within seconds. */
import { get } from 'node:http';
import { Agent } from 'node:https';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { TomlTable } from 'smol-toml';
import { afterEach, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section, type EstuaryOptions } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { untilLogged, type ListenerName } from '../support/server-process.ts';
import { openMany, openTcp, rssMiB, settled, socketsOf } from '../support/slow-clients.ts';
import { until } from '../support/until.ts';

const LISTENERS = ['est', 'admin', 'publication'] as const;
const wire = onTheWire(simpleCsr(makeKey()));
let estuary: Estuary | undefined;
let open: Socket[] = [];

async function start(server: TomlTable, more: Omit<EstuaryOptions, 'configure' | 'listeners'> = {}): Promise<Estuary> {
  estuary = await Estuary.start({
    ...more,
    listeners: LISTENERS,
    configure(config) {
      Object.assign(section(config, 'server'), server);
      const base = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), base);
    },
  });
  return estuary;
}
afterEach(async () => {
  for (const socket of open) socket.destroy();
  open = [];
  await estuary?.stop();
  estuary = undefined;
});

const enrolls = async (est: Estuary): Promise<number> => {
  const { token } = await est.otp();
  return (await est.enroll(wire, { password: token })).status;
};

/** A request, and again where it took longer than the server's limits of a second or two: a busy machine may need that. */
async function inTime<T>(request: () => Promise<T>): Promise<T> {
  const { value } = await until('a request within the limits', async () => {
    const began = Date.now();
    const isLate = (): boolean => Date.now() - began > 1000;
    try {
      const answer = await request();
      return !(answer === 408 && isLate()) && { value: answer };
    } catch (error) {
      if (!isLate()) throw error;
      return undefined;
    }
  });
  return value;
}

/** How many sockets the server keeps: the least of some looks, as one that it refuses is open for a moment. */
const kept = (est: Estuary): number => Math.min(...Array.from({ length: 10 }, () => socketsOf(est.server.pid)));

/** The beginning of a TLS record that says it holds a ClientHello of 500 octets. */
const HALF_HELLO = Buffer.from('16030101f4010001f00303', 'hex');

/** What a client may do and then say no more; the connection stays open on its side. */
const STALLED: Readonly<Record<string, { readonly tls: boolean; readonly bytes: string | Buffer }>> = {
  'says nothing': { tls: false, bytes: '' },
  'half a ClientHello': { tls: false, bytes: HALF_HELLO },
  'no TLS at all': { tls: false, bytes: 'GET / HTTP/1.1\r\nHost: x\r\n' },
  'no request after the handshake': { tls: true, bytes: '' },
  'half a header': { tls: true, bytes: 'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\n' },
  'half a body': {
    tls: true,
    bytes:
      'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\nContent-Length: 900\r\n\r\nMII',
  },
  'nonsense in HTTP': { tls: true, bytes: 'nonsense\r\n\r\n' },
  'a header that is too large': { tls: true, bytes: `GET / HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(200_000)}\r\n\r\n` },
  'one request, then nothing': { tls: true, bytes: 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n' },
};

async function stall(est: Estuary, listener: ListenerName, kind: string, localAddress?: string): Promise<void> {
  const { tls, bytes } = STALLED[kind] ?? { tls: false, bytes: '' };
  const socket = await openTcp(est.server.port(listener), localAddress);
  open.push(socket);
  if (!tls || listener === 'publication') {
    socket.write(bytes);
    return;
  }
  const secured = connectTls({ socket, servername: 'localhost', ca: est.root }, () => secured.write(bytes));
  secured.on('error', () => undefined).resume();
  open.push(secured);
}

test('whatever a client begins and never ends, the server is rid of it within seconds', async () => {
  const est = await start({ handshake_timeout: 1, headers_timeout: 1, request_timeout: 2, keep_alive_timeout: 1 });
  expect(await inTime(() => enrolls(est))).toBe(200);
  const before = socketsOf(est.server.pid);
  const kinds = LISTENERS.flatMap((listener) => Object.keys(STALLED).map((kind) => ({ listener, kind })));
  await Promise.all(kinds.map(({ listener, kind }) => stall(est, listener, kind)));
  await until('every connection is gone', () => socketsOf(est.server.pid) <= before);
  expect(await inTime(() => enrolls(est))).toBe(200);
});

test('1,100 silent connections under `ulimit -n 1024` cost nothing once they are gone', async () => {
  const est = await start({ handshake_timeout: 2, headers_timeout: 2 }, { openFiles: 1024 });
  expect(await inTime(() => enrolls(est))).toBe(200);
  const before = socketsOf(est.server.pid);
  for (const listener of LISTENERS) {
    open.push(...(await openMany(est.server.port(listener), 1100)));
    for (const other of LISTENERS.filter((name) => name !== listener))
      await stall(est, other, 'one request, then nothing');
    await until(`${listener}: every connection is gone`, () => socketsOf(est.server.pid) <= before + 4);
    expect(await inTime(() => enrolls(est)), listener).toBe(200);
  }
  await inTime(() => est.outputSoFar());
  expect(est.server.log().filter(({ level }) => level === 'error' || level === 50)).toEqual([]);
});

test('SIGTERM ends within server.shutdown_grace whatever is open', async () => {
  const est = await start({ shutdown_grace: 2, handshake_timeout: 600, headers_timeout: 600, request_timeout: 600 });
  const kinds = LISTENERS.flatMap((listener) => Object.keys(STALLED).map((kind) => ({ listener, kind })));
  await Promise.all(kinds.map(({ listener, kind }) => stall(est, listener, kind)));
  expect(await est.server.stop()).toEqual({ code: 0, signal: null });
});

/** The status of a small request from another loopback address. */
function getFrom(est: Estuary, listener: ListenerName, localAddress: string): Promise<number> {
  const path = { est: '/.well-known/est/cacerts', admin: '/healthz', publication: '/ca/devices.cer' }[listener];
  const port = est.server.port(listener);
  if (listener !== 'publication') {
    const agent = new Agent({ keepAlive: false, localAddress });
    return call({ port, path, tls: { ca: est.root }, agent }).then(({ status }) => status);
  }
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, localAddress, agent: false }, (response) => {
      resolve(response.resume().statusCode ?? 0);
    }).on('error', reject);
  });
}

/** Opens connections and waits until the server keeps at most `expected` of them; how many it keeps. */
async function keptOf(
  est: Estuary,
  listener: ListenerName,
  addresses: readonly string[],
  each: number,
  expected: number,
): Promise<number> {
  const port = est.server.port(listener);
  const sockets = (await Promise.all(addresses.map((address) => openMany(port, each, address)))).flat();
  open.push(...sockets);
  const left = (): number => sockets.filter((socket) => !socket.readableEnded && !socket.destroyed).length;
  await until(`${listener} keeps ${expected}`, () => left() <= expected);
  await settled(left);
  return left();
}

describe('limits of connections', () => {
  test('of each listener: server.max_connections in all, server.max_connections_per_address from one', async () => {
    const limits = { max_connections: 20, max_connections_per_address: 8 };
    const est = await start({ ...limits, handshake_timeout: 600, headers_timeout: 600, request_timeout: 600 });
    const before = socketsOf(est.server.pid);
    const allGone = async (): Promise<void> => {
      for (const socket of open.splice(0)) socket.destroy();
      await until('every connection is gone', () => socketsOf(est.server.pid) <= before);
    };
    for (const listener of LISTENERS) {
      expect(await keptOf(est, listener, ['127.0.0.2'], 12, 8), `${listener}, one address`).toBe(8);
      expect(await keptOf(est, listener, ['127.0.0.3', '127.0.0.4'], 12, 12), `${listener}, in all`).toBe(12);
      expect(await keptOf(est, listener, ['127.0.0.5'], 1, 0), `${listener}, one more`).toBe(0);
      await allGone();
      expect(await keptOf(est, listener, ['127.0.0.6'], 8, 8), `${listener}, when the others are gone`).toBe(8);
      await allGone();
    }
    expect(await untilLogged(est.server, { msg: 'too many connections' })).toMatchObject({
      listener: 'est',
      address: '127.0.0.2',
      limit: 'server.max_connections_per_address',
    });
  });
});

describe('connections from few addresses do not keep another address from service', () => {
  const FEW = ['127.0.0.10', '127.0.0.11', '127.0.0.12', '127.0.0.13'];
  const NEVER = { handshake_timeout: 600, headers_timeout: 600, request_timeout: 600, keep_alive_timeout: 600 };

  /** Requests of another address, each on a new connection. */
  async function served(est: Estuary, listener: ListenerName): Promise<void> {
    for (let i = 0; i < 8; i++) expect(await getFrom(est, listener, '127.0.0.9')).toBe(200);
  }

  test.each(LISTENERS)('%s: whatever they begin and never end', async (listener) => {
    const est = await start({ ...NEVER, max_connections: 128, max_connections_per_address: 64 });
    const kinds = Object.keys(STALLED).filter((kind) => /^(says|half|no request|one)/.test(kind));
    for (const kind of kinds) {
      await Promise.all(
        FEW.flatMap((address) => Array.from({ length: 40 }, () => stall(est, listener, kind, address))),
      );
      await served(est, listener);
      for (const socket of open.splice(0)) socket.destroy();
    }
  });

  test('6,000 silent ones', async () => {
    const est = await start(NEVER);
    const before = socketsOf(est.server.pid);
    const port = est.server.port('est');
    open.push(...(await Promise.all(FEW.map((address) => openMany(port, 1500, address)))).flat());
    await served(est, 'est');
    expect(kept(est) - before).toBeLessThanOrEqual(4096);
    const refused = await untilLogged(est.server, { msg: 'too many connections' });
    expect(refused).toMatchObject({ listener: 'est' });
  });
});

test('6,000 connections cost what the limits allow, and not again the next time', async () => {
  const est = await start({ handshake_timeout: 2, headers_timeout: 2 });
  expect(await inTime(() => enrolls(est))).toBe(200);
  const before = socketsOf(est.server.pid);
  /** Resident memory of the server, MiB, while they are open. */
  const flood = async (): Promise<number> => {
    const addresses = Array.from({ length: 6 }, (_, i) => `127.0.0.${10 + i}`);
    const sockets = await Promise.all(addresses.map((address) => openMany(est.server.port('est'), 1000, address)));
    expect(kept(est) - before).toBeLessThanOrEqual(4096);
    const memory = rssMiB(est.server.pid);
    await until('every connection is gone', () => socketsOf(est.server.pid) <= before);
    for (const socket of sockets.flat()) socket.destroy();
    return memory;
  };
  // On a busy machine, the first can be cut before all are there.
  const former = Math.max(await flood(), await flood());
  expect(await flood()).toBeLessThan(former + 150);
  expect(await inTime(() => enrolls(est))).toBe(200);
});
