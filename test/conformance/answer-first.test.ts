/**
 * The response to a complete request always arrives, once, whatever follows it on the connection and whichever side ends
 * first (RFC 9112 §9.3.2 and §9.6, RFC 8446 §6.1).
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, hashOtpsCheaply, section } from '../support/estuary.ts';
import { Random } from '../support/random.ts';
import { runText } from '../support/command.ts';
import type { ListenerName } from '../support/server-process.ts';

const LISTENERS = ['est', 'admin', 'publication'] as const;
const GETS: Readonly<Record<ListenerName, string>> = {
  est: '/.well-known/est/cacerts',
  admin: '/healthz',
  publication: '/ca/devices.cer',
};
const csr = onTheWire(simpleCsr(makeKey()));
let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: LISTENERS,
    configure: (config, dir) => {
      hashOtpsCheaply(config, dir);
      const publication = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), publication);
      Object.assign(section(config, 'server'), { headers_timeout: 2, keep_alive_timeout: 1, body_limit: 65_536 });
    },
  });
});
afterAll(() => estuary.stop());

type Ending = 'none' | 'close_notify' | 'FIN';

/** Writes the pieces, each alone, ends one side as asked, and reads until the server closes. */
async function exchange(listener: ListenerName, pieces: readonly (string | Buffer)[], ending: Ending = 'none') {
  const port = estuary.server.port(listener);
  const raw = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const socket: Socket =
    listener === 'publication'
      ? raw
      : connectTls({ socket: raw, servername: 'localhost', ca: estuary.root, ALPNProtocols: ['http/1.1'] });
  Object.assign(socket, { allowHalfOpen: true });
  let text = '';
  const closed = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('end', () => {
      socket.destroy();
      resolve();
    });
    // What has arrived counts.
    socket.on('error', () => resolve());
    socket.setTimeout(60_000, () => reject(new Error(`no end; so far ${text}`)));
  });
  await new Promise((resolve) => socket.once(listener === 'publication' ? 'connect' : 'secureConnect', resolve));
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
  if (ending === 'close_notify') socket.end();
  if (ending === 'FIN') raw.end();
  await closed;
  raw.destroy();
  return statuses(text);
}

/** The status of each response; throws for other content. */
function statuses(text: string): number[] {
  const found: number[] = [];
  for (let rest = text; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n');
    const head = rest.slice(0, end);
    const status = /^HTTP\/1\.[01] (\d{3}) /.exec(head)?.[1];
    if (end < 0 || status === undefined) throw new Error(`not a response: ${rest}`);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    if (rest.length < end + 4 + length) throw new Error(`cut: ${rest}`);
    found.push(Number(status));
    rest = rest.slice(end + 4 + length);
  }
  return found;
}

const get = (listener: ListenerName, ...headers: string[]): string =>
  [`GET ${GETS[listener]} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');

async function enrollment(...headers: string[]): Promise<string> {
  const { token } = await estuary.otp();
  const basic = Buffer.from(`device:${token}`).toString('base64');
  const head = ['Host: localhost', `Authorization: Basic ${basic}`, 'Content-Type: application/pkcs10', ...headers];
  return [`POST /.well-known/est/simpleenroll HTTP/1.1`, ...head, `Content-Length: ${csr.length}`, '', csr].join(
    '\r\n',
  );
}

const STRAYS: readonly (readonly [what: string, octets: string])[] = [
  ['NUL', '\0'],
  ['a space', ' '],
  ['a brace', '}'],
  ['a line', 'ABC\r\n'],
  ['a line end', '\r\n'],
  ['a broken request', 'GET\r\n\r\n'],
  ['the start of a TLS handshake', '\x16\x03\x01\x02\x00'],
  ['a request with a broken body', 'POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n'],
];

describe('RFC 9112 §9.3.2: an enrollment is answered, whatever follows it', () => {
  test.each(STRAYS)('%s in the same write', async (_, octets) => {
    const [first, ...more] = await exchange('est', [(await enrollment()) + octets]);
    expect(first).toBe(200);
    expect(more.filter((status) => status < 400)).toEqual([]);
  });

  test.each(STRAYS)('%s after Connection: close', async (_, octets) => {
    expect(await exchange('est', [(await enrollment('Connection: close')) + octets])).toEqual([200]);
  });

  test('what follows a keep-alive request gets a 400 after the response', async () => {
    expect(await exchange('est', [(await enrollment()) + '\0'])).toEqual([200, 400]);
  });

  test('an incomplete second request ends with the header timeout', async () => {
    const [first, ...more] = await exchange('est', [(await enrollment()) + 'GET /.well']);
    expect([first, more.every((status) => status === 408)]).toEqual([200, true]);
  });

  test.each(['close_notify', 'FIN'] as const)('RFC 8446 §6.1: a client that ends its side by %s', async (ending) => {
    expect(await exchange('est', [await enrollment()], ending)).toEqual([200]);
  });

  test('a NUL, then the end of the client side', async () => {
    const [first, ...more] = await exchange('est', [(await enrollment()) + '\0'], 'FIN');
    expect([first, more.every((status) => status === 400)]).toEqual([200, true]);
  });

  test('an HTTP/1.0 request after an HTTP/1.1 request is answered second', async () => {
    const second = `GET ${GETS.est} HTTP/1.0\r\n\r\n`;
    expect(await exchange('est', [(await enrollment()) + second])).toEqual([200, 200]);
  });
});

describe.each(LISTENERS)('the %s listener answers a complete request once', (listener) => {
  test.each(STRAYS)('before %s', async (_, octets) => {
    const [first, ...more] = await exchange(listener, [get(listener) + octets]);
    expect([first, more.filter((status) => status < 400)]).toEqual([200, []]);
  });

  test.each(listener === 'publication' ? (['FIN'] as const) : (['close_notify', 'FIN'] as const))(
    'after the client has ended its side by %s',
    async (ending) => {
      expect(await exchange(listener, [get(listener)], ending)).toEqual([200]);
      expect(await exchange(listener, [get(listener) + get(listener)], ending)).toEqual([200, 200]);
    },
  );

  test('whatever follows (seeded)', async () => {
    const random = new Random(50);
    const parts = [
      ...STRAYS.map(([, octets]) => octets),
      'GET / HTTP/1.1\r\n',
      'Host: a b\r\n',
      '0\r\n\r\n',
      '\r\n\r\n',
    ];
    const tries = Array.from({ length: 40 }, () => {
      const octets = Buffer.from(Array.from({ length: random.between(0, 40) }, () => random.between(0, 256)));
      const follows = [...random.shuffled(parts).slice(0, random.between(0, 4)), octets].map((part) =>
        Buffer.from(part),
      );
      const request = Buffer.from(get(listener, ...(random.next() < 0.3 ? ['Connection: close'] : [])));
      const isOne = random.next() < 0.5;
      const pieces = isOne ? [Buffer.concat([request, ...follows])] : [request, ...follows];
      return { pieces, ending: random.pick(['none', 'FIN'] as const) ?? 'none' };
    });
    for (let i = 0; i < tries.length; i += 10) {
      const answers = await Promise.all(tries.slice(i, i + 10).map((t) => exchange(listener, t.pieces, t.ending)));
      for (const [first, ...more] of answers) expect([first, more.filter((status) => status < 400)]).toEqual([200, []]);
    }
  });
});

describe('RFC 9112 §9.6: a 413 arrives while the client still sends', () => {
  test.each(LISTENERS)('on the %s listener', async (listener) => {
    const [path, type] = {
      est: ['/.well-known/est/simpleenroll', 'application/pkcs10'],
      admin: ['/admin/otp', 'application/json'],
      publication: ['/ocsp/devices', 'application/ocsp-request'],
    }[listener];
    const size = 2 ** 22;
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${estuary.adminToken}`,
      `Content-Type: ${type}`,
      `Content-Length: ${size}`,
    ];
    const body = Array.from({ length: 64 }, () => Buffer.alloc(size / 64, 'A'));
    expect(await exchange(listener, [[...head, '', ''].join('\r\n'), ...body])).toEqual([413]);
    const chunked = [...head.slice(0, -1), 'Transfer-Encoding: chunked', '', ''].join('\r\n');
    const chunks = body.map((piece) => Buffer.concat([Buffer.from('10000\r\n'), piece, Buffer.from('\r\n')]));
    expect(await exchange(listener, [chunked, ...chunks])).toEqual([413]);
  });
});

describe('every listener', () => {
  test.each(LISTENERS)('%s: the names of response headers are written as in the RFCs', async (listener) => {
    const socket = connect({ port: estuary.server.port(listener), host: '127.0.0.1' });
    const stream =
      listener === 'publication' ? socket : connectTls({ socket, servername: 'localhost', ca: estuary.root });
    stream.write(get(listener, 'Connection: close'));
    let text = '';
    for await (const chunk of stream) text += (chunk as Buffer).toString('latin1');
    const head = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n').slice(1);
    const names = head.map((line) => line.slice(0, line.indexOf(':')));
    expect(names).toContain('Content-Length');
    expect(names).toContain('Content-Type');
    expect(names.filter((name) => !/^(?:ETag|WWW-Authenticate|(?:[A-Z][a-z]*)(?:-[A-Z][a-z]*)*)$/.test(name))).toEqual(
      [],
    );
  });

  test.each(LISTENERS)('%s: a Host header that is not host[:port] gets 400', async (listener) => {
    for (const host of ['a b', 'a/b', 'user@a', 'a:b', 'a:1:2', '[::1', 'ü'])
      expect(await exchange(listener, [get(listener).replace('localhost', host)], 'FIN')).toEqual([400]);
    for (const host of ['a_b', '[::1]:1', '127.0.0.1:80', 'a.example.', '[fe80::1%25eth0]', 'a:'])
      expect(await exchange(listener, [get(listener).replace('localhost', host)], 'FIN')).toEqual([200]);
  });

  test('curl with HTTP/1.0, which it offers by ALPN, gets its answer', async () => {
    const url = `https://localhost:${estuary.server.port('est')}${GETS.est}`;
    expect(
      await runText('curl', [
        '-0',
        '-sS',
        '-o',
        '/dev/null',
        '-w',
        '%{http_code}',
        '--cacert',
        `${estuary.dir}/ca/root.pem`,
        url,
      ]),
    ).toBe('200');
  });

  test('a path with an empty segment, or a slash at its end, gets 404 that names the slash', async () => {
    for (const path of ['/cacerts', 'cacerts/', 'devices//cacerts', 'devices/cacerts/', '/']) {
      const answer = await estuary.est(path);
      expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('slash')]);
    }
  });
});
