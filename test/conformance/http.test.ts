/** RFC 9110 and RFC 9112 at the built server: rules of all listeners. */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { openTls } from '../support/https.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { freePorts } from '../support/ports.ts';
import { issuedOutside, postCmc, requestBy, tcr } from '../support/cmc.ts';
import type { ListenerName } from '../support/server-process.ts';

const RETRY_AFTER = 17;
const LISTENERS = ['est', 'admin', 'publication'] as const;
/** A path that each listener answers with 200 and a body. */
const PATHS: Readonly<Record<ListenerName, string>> = {
  est: '/.well-known/est/cacerts',
  admin: '/healthz',
  publication: '/ca/devices.cer',
};
let estuary: Estuary;

beforeAll(async () => {
  const [nobody] = await freePorts(1);
  estuary = await Estuary.start({
    listeners: LISTENERS,
    configure: (config) => {
      section(config, 'est')['retry_after'] = RETRY_AFTER;
      const publication = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), publication);
      // The service that decides about enrollments at this label does not answer.
      caSection(config, 1)['authorization'] = { url: `https://127.0.0.1:${String(nobody)}/`, timeout: 1 };
    },
  });
});
afterAll(() => estuary.stop());

interface RawAnswer {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends a request as it stands here, and reads until the server closes the connection. */
async function send(listener: ListenerName, lines: readonly string[], body = ''): Promise<RawAnswer> {
  const port = estuary.server.port(listener);
  const socket = listener === 'publication' ? connect(port, '127.0.0.1') : await openTls(port, { ca: estuary.root });
  socket.setTimeout(60_000, () => socket.destroy(new Error('no answer')));
  socket.write([...lines, 'Connection: close', '', body].join('\r\n'));
  let text = '';
  for await (const chunk of socket) text += (chunk as Buffer).toString('latin1');
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [first = '', ...fields] = head.split('\r\n');
  const headers = fields.map((field): [string, string] => {
    const at = field.indexOf(':');
    return [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()];
  });
  return { status: Number(first.split(' ')[1]), headers: new Map(headers), body: rest.join('\r\n\r\n') };
}

const authorization = (): string => `Authorization: Bearer ${estuary.adminToken}`;

describe.each(LISTENERS)('the %s listener', (listener) => {
  const path = PATHS[listener];
  const scheme = listener === 'publication' ? 'http' : 'https';

  test.each(['', ':8443'])('RFC 9112 §3.2.2: accepts a target in absolute form (port "%s")', async (port) => {
    const { status, body } = await send(listener, [
      `GET ${scheme}://elsewhere.example${port}${path} HTTP/1.1`,
      'Host: h',
    ]);
    expect([status, body.length > 0]).toEqual([200, true]);
  });

  test('RFC 9112 §3.2.2: a target in absolute form without a path is the root', async () => {
    const [absolute, origin] = [
      await send(listener, [`GET ${scheme}://elsewhere.example HTTP/1.1`, 'Host: h']),
      await send(listener, ['GET / HTTP/1.1', 'Host: h']),
    ];
    expect([absolute.status, absolute.body.length]).toEqual([origin.status, origin.body.length]);
  });

  test.each(['ftp://h', `${scheme}://`, `${scheme}://user@h`, 'h'])(
    'RFC 9112 §3.2: "%s" does not begin a request target',
    async (beginning) => {
      const { status } = await send(listener, [`GET ${beginning}${path} HTTP/1.1`, 'Host: h']);
      expect(status).toBe(400);
    },
  );

  test.each([
    ['two that differ', ['Host: a.example', 'Host: b.example'], 400],
    ['the same twice', ['Host: a.example', 'hOST: a.example'], 400],
    ['none', [], 400],
    ['one', ['Host: a.example'], 200],
  ])('RFC 9112 §3.2: Host headers: %s', async (_, hosts, status) => {
    for (const target of [path, `${scheme}://a.example${path}`])
      expect((await send(listener, [`GET ${target} HTTP/1.1`, ...hosts])).status).toBe(status);
  });

  test('a path that ends with a slash gets 404 that names the slash', async () => {
    const { status, body } = await send(listener, [`GET ${path}/ HTTP/1.1`, 'Host: h']);
    expect([status, body]).toEqual([404, expect.stringContaining('slash')]);
  });

  test('RFC 9110 §9.3.6: a CONNECT gets a response', async () => {
    expect((await send(listener, ['CONNECT a.example:443 HTTP/1.1', 'Host: a.example:443'])).status).toBe(400);
  });

  test('RFC 9110 §9.3.2: HEAD has the headers of GET and no body', async () => {
    const [get, head] = [
      await send(listener, [`GET ${path} HTTP/1.1`, 'Host: h']),
      await send(listener, [`HEAD ${path} HTTP/1.1`, 'Host: h']),
    ];
    const changing = new Set(['date', 'x-request-id']);
    const shown = ({ status, headers }: RawAnswer) => [
      status,
      [...headers].filter(([name]) => !changing.has(name)).sort(),
    ];
    expect(shown(head)).toEqual(shown(get));
    expect([get.body.length > 0, head.body]).toEqual([true, '']);
  });
});

test('RFC 9110 §9.3.2: every GET of the admin API answers HEAD', async () => {
  const { json } = await estuary.admin('GET', '/admin/openapi.json');
  const { paths } = json;
  if (typeof paths !== 'object' || paths === null) throw new TypeError('no paths');
  const gets = Object.entries(paths as Record<string, object>).flatMap(([path, item]) => ('get' in item ? [path] : []));
  expect(gets).toContain('/admin/events');
  for (const path of gets) {
    const url = path.replace('{label}', 'devices').replace(/\{[^}]+\}/g, '00');
    const head = await send('admin', [`HEAD ${url} HTTP/1.1`, 'Host: h', authorization()]);
    expect([url, head.body]).toEqual([url, '']);
    if (path === '/admin/events') expect(head.headers.get('content-type')).toBe('text/event-stream');
    else
      expect([url, head.status]).toEqual([
        url,
        (await send('admin', [`GET ${url} HTTP/1.1`, 'Host: h', authorization()])).status,
      ]);
  }
});

test('RFC 9110 §9.3.2: an EST operation that takes GET names HEAD in Allow', async () => {
  const { status, headers } = await send('est', ['DELETE /.well-known/est/csrattrs HTTP/1.1', 'Host: h']);
  expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test('a browser that sends the target in absolute form is of the same site by that target', async () => {
  const post = (target: string) =>
    send('admin', [`POST ${target} HTTP/1.1`, 'Host: other.example', 'Origin: https://own.example', authorization()]);
  expect((await post('https://own.example/admin/reload')).status).not.toBe(403);
  expect((await post('/admin/reload')).status).toBe(403);
});

test('a file of the console is sent without a warning of Node in the log', async () => {
  const warnings: string[] = [];
  const note = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', note);
  const { status } = await send('admin', ['GET / HTTP/1.1', 'Host: localhost']);
  process.off('warning', note);
  expect(status).toBe(200);
  expect(warnings).toEqual([]);
});

describe('RFC 9110 §15.6.4: a 503 carries Retry-After', () => {
  test.each(['1.1', '1.0'])('of simpleenroll, HTTP/%s', async (version) => {
    const wire = onTheWire(simpleCsr(makeKey()));
    const password = Buffer.from(`device:${(await estuary.otp()).token}`).toString('base64');
    const type = 'Content-Type: application/pkcs10';
    const { status, headers } = await send(
      'est',
      [
        ...[`POST /.well-known/est/lab/simpleenroll HTTP/${version}`, 'Host: h', type],
        ...[`Authorization: Basic ${password}`, `Content-Length: ${wire.length}`],
      ],
      wire,
    );
    expect([status, headers.get('retry-after')]).toEqual([503, String(RETRY_AFTER)]);
  });

  test('of fullcmc', async () => {
    const client = issuedOutside(estuary, 'lab', makeKey(), '/CN=device-1', ['keyUsage=critical,digitalSignature']);
    const der = await requestBy(client, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] });
    const { status, headers } = await postCmc(estuary, der, client, 'lab/fullcmc');
    expect([status, headers['retry-after']]).toEqual([503, String(RETRY_AFTER)]);
  });
});
