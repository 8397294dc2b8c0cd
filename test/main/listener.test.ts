/** A listener takes its port before it serves, and bounds and closes every connection of every socket that it opens. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { get, type Server } from 'node:http';
import { createServer, isIP, type AddressInfo } from 'node:net';
import fastify from 'fastify';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { bindAll, Listener, type Binding, type ListenerName } from '../../src/main/listener.ts';
import { runText } from '../support/command.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { requires } from '../support/requires.ts';

const made: Listener[] = [];
afterEach(async () => {
  for (const listener of made.splice(0)) await listener.close(0);
});

/** A listener that answers `/` with its number, and the addresses for which Fastify was asked. */
function listener(binding: Partial<Binding> = {}, name: ListenerName = 'admin', unavailable?: string) {
  const app = fastify();
  const own = `listener ${made.length}`;
  app.get('/', () => own);
  const asked: string[] = [];
  const logged: unknown[] = [];
  const listen = (at: Binding): Promise<unknown> => {
    asked.push(at.host);
    if (unavailable !== undefined && at.host.includes(':'))
      return Promise.reject(Object.assign(new Error('no IPv6'), { code: unavailable }));
    return app.listen(at);
  };
  const one = new Listener(
    name,
    { host: '127.0.0.1', port: 0, ...binding },
    { server: app.server, listen, close: () => app.close() },
    {
      limits: { total: 64, perAddress: 64 },
      log: { info: (fields: unknown) => void logged.push(fields), warn: () => undefined },
    },
  );
  made.push(one);
  return { app, asked, logged, listener: one };
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

function answerOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/', agent: false }, (response) => {
      response.setEncoding('utf8').on('data', resolve);
    }).on('error', reject);
  });
}

test.each(['localhost', '127.0.0.1'])(
  'host = "%s" is one address for Fastify, which makes servers without limits of the others of localhost',
  async (host) => {
    const { app, asked, listener: one } = listener({ host });
    await one.bind();
    expect(asked.map(isIP)).not.toContain(0);
    expect(app.addresses()).toHaveLength(1);
  },
);

test.each(['EAFNOSUPPORT', 'EADDRNOTAVAIL'])(
  'host = "::" is IPv4 alone on a machine without IPv6 (%s)',
  async (code) => {
    const { asked, app, listener: one } = listener({ host: '::' }, 'est', code);
    await one.bind();
    expect(asked).toEqual(['::', '0.0.0.0']);
    expect(app.addresses()).toMatchObject([{ address: '0.0.0.0' }]);
    const other = listener({ host: '::1' }, 'est', code);
    await expect(other.listener.bind()).rejects.toThrow('cannot listen on ::1');
  },
);

test.skipIf(!requires('curl', 'root'))('host = "::" is every address of localhost in the hosts file', async () => {
  const { app, listener: one } = listener({ host: '::' });
  await one.bind();
  one.open();
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  writeFileSync(folder.file('hosts'), '::1 localhost\n127.0.0.1 localhost\n');
  const withHosts = ['--mount', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', folder.file('hosts')];
  const curl = ['curl', '-sS', '--noproxy', '*', `http://localhost:${portOf(app.server)}/`];
  for (const family of ['-6', '-4'])
    expect(await runText('unshare', [...withHosts, ...curl, family])).toMatch(/^listener/);
});

test('host = "::" is a failure where the port is taken', async () => {
  const { asked, listener: one } = listener({ host: '::' }, 'est', 'EADDRINUSE');
  await expect(one.bind()).rejects.toThrow('Another program uses the port');
  expect(asked).toEqual(['::']);
});

describe('before it serves', () => {
  test('connections wait, and are served when it opens', async () => {
    const { app, logged, listener: one } = listener();
    await one.bind();
    const answers = [answerOf(portOf(app.server)), answerOf(portOf(app.server))];
    let answered = 0;
    for (const answer of answers) void answer.then(() => (answered += 1));
    const connections = () => new Promise<number>((resolve) => app.server.getConnections((_, count) => resolve(count)));
    await expect.poll(connections).toBe(2);
    expect([answered, logged]).toEqual([0, []]);
    one.open();
    expect(await Promise.all(answers)).toEqual(['listener 0', 'listener 0']);
    expect(logged).toEqual([{ listener: 'admin', address: '127.0.0.1', port: portOf(app.server) }]);
  });

  test('a connection that is reset meanwhile, or waits when the start fails, is closed', async () => {
    const { app, listener: one } = listener();
    await one.bind();
    const port = portOf(app.server);
    const request = get({ host: '127.0.0.1', port, agent: false }).on('error', () => undefined);
    await once(request, 'socket');
    await once(request.socket ?? request, 'connect');
    (request.socket as unknown as { resetAndDestroy(): void }).resetAndDestroy();
    const waits = expect(answerOf(port)).rejects.toThrow();
    await one.close(60_000);
    await waits;
  });
});

test('each port that cannot be taken is named, with what to do', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const listeners = [
    listener({ port }, 'est'),
    listener({ host: '192.0.2.1', port: 1 }, 'admin'),
    listener({ host: 'no.such.host.invalid', port: 1 }, 'publication'),
  ];
  const failure = await bindAll(listeners.map((listener) => listener.listener)).catch((error: unknown) => error);
  other.close();
  if (!(failure instanceof Error)) throw new Error('all ports could be taken');
  const [est, admin, publication, ...more] = failure.message.split('\n');
  expect(est).toBe(
    `the est listener cannot listen on 127.0.0.1, port ${port} (listen EADDRINUSE: address already in use 127.0.0.1:${port}). ` +
      'Another program uses the port: stop it, or change est.port.',
  );
  expect(admin).toMatch(
    /^the admin listener cannot listen on 192\.0\.2\.1, port 1 \(.*EADDRNOTAVAIL.*change admin\.host\.$/,
  );
  expect(publication).toMatch(
    /^the publication listener cannot listen on no\.such\.host\.invalid, port 1 .*publication\./,
  );
  expect(more).toEqual([]);
});

describe('server.reuse_port', () => {
  test('listeners of several nodes share a port', async () => {
    const first = listener({ reusePort: true });
    await first.listener.bind();
    const port = portOf(first.app.server);
    const second = listener({ port, reusePort: true });
    await second.listener.bind();
    first.listener.open();
    second.listener.open();
    const answers = new Set<string>();
    for (let i = 0; i < 200 && answers.size < 2; i++) answers.add(await answerOf(port));
    expect([...answers].toSorted()).toEqual(['listener 0', 'listener 1']);
  });

  test('without it, a shared port is refused', async () => {
    const first = listener({ reusePort: true });
    await first.listener.bind();
    await expect(listener({ port: portOf(first.app.server) }).listener.bind()).rejects.toThrow('EADDRINUSE');
  });
});
