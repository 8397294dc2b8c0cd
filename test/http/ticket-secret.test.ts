/** Session tickets resume at every process of a service, but not forever, and not under other anchors. */
import { createServer, type Server } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TICKET_PERIOD, TicketSecret } from '../../src/http/ticket-secret.ts';
import { TlsEnd, type TlsMaterial } from '../../src/http/tls.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, makeCa, makeClient, subjectAltName, type Issuer } from '../support/certificates.ts';
import { pkcs8Pem } from '../support/keys.ts';

const pem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);

const root = await makeCa('CN=Root');
const other = await makeCa('CN=Other');
const own = await makeClient('CN=localhost', root, { extensions: [subjectAltName(dns('localhost'))] });
const device = await makeClient('CN=device', root);

let now: number;
beforeEach(() => (now = 100 * TICKET_PERIOD));
const clock = (): number => now;

describe('keys', () => {
  const keys = (secret: TicketSecret, listener = 'est', anchors = ['a']): string =>
    secret.keysOf(listener, anchors).toString('hex');

  test('are 48 octets, and the same in every process, also in the periods that follow', () => {
    const secret = TicketSecret.random(clock);
    const shared = TicketSecret.of(secret.share(), clock);
    expect(secret.keysOf('est', ['a'])).toHaveLength(48);
    expect(keys(shared)).toBe(keys(secret));
    now += 3 * TICKET_PERIOD;
    expect(keys(shared)).toBe(keys(secret));
    expect(keys(TicketSecret.of(secret.share(), clock))).toBe(keys(secret));
  });

  test.each([
    ['another listener', (secret: TicketSecret) => keys(secret, 'admin')],
    ['other anchors', (secret: TicketSecret) => keys(secret, 'est', ['b'])],
    ['another secret', () => keys(TicketSecret.random(clock))],
    [
      'another period',
      (secret: TicketSecret) => {
        now += TICKET_PERIOD;
        return keys(secret);
      },
    ],
  ])('of %s are others', (_name, changed) => {
    const secret = TicketSecret.random(clock);
    const before = keys(secret);
    expect(changed(secret)).not.toBe(before);
  });

  test('of a period that is over do not come back, however the clock is set', () => {
    const secret = TicketSecret.random(clock);
    const before = keys(secret);
    now += TICKET_PERIOD;
    const after = keys(secret);
    now -= TICKET_PERIOD;
    expect(keys(secret)).toBe(after);
    expect(after).not.toBe(before);
  });
});

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('sessions, %s', (version) => {
  let server: Server;
  afterEach(() => server.close());

  const material = (...anchors: readonly Issuer[]): TlsMaterial => ({
    certificate: pem(own),
    privateKey: pkcs8Pem(own.keys),
    minVersion: 'TLSv1.2',
    groups: ['P-256'],
    clientCas: anchors.map(pem),
  });
  const listenerWith = (ticketSecret: TicketSecret): TlsEnd => {
    const tls = { client_auth: { mode: 'required' }, mode: 'required' } as const;
    return new TlsEnd('est', { server: { handshake_timeout: 60 }, tls, admin: { tls }, est: {} }, ticketSecret);
  };

  async function start(listener: TlsEnd): Promise<void> {
    server = createServer(listener.options, (_request, response) => response.end());
    listener.present(server, material(root));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }

  /** One request; the session that it leaves, and whether it took up the one given. */
  function visit(session?: Buffer): Promise<{ reused: boolean; session: Buffer | undefined }> {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return new Promise((resolve) => {
      let [reused, ticket]: [boolean, Buffer | undefined] = [false, undefined];
      const socket: TLSSocket = connect({
        ...{ host: '127.0.0.1', port: address.port, servername: 'localhost', ca: pem(root) },
        ...{ minVersion: version, maxVersion: version, cert: pem(device), key: pkcs8Pem(device.keys) },
        ...(session === undefined ? {} : { session }),
      });
      socket.once('secureConnect', () => {
        reused = socket.isSessionReused();
        socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      });
      socket.on('session', (given: Buffer) => (ticket = given));
      socket.on('error', () => undefined).resume();
      socket.on('close', () => resolve({ reused, session: ticket }));
    });
  }

  test.each([
    ['nothing', () => undefined, true],
    ['a reload that leaves the anchors', (listener: TlsEnd) => listener.present(server, material(root)), true],
    ['a reload with another anchor', (listener: TlsEnd) => listener.present(server, material(root, other)), false],
    ['a look at the keys', (listener: TlsEnd) => listener.renewTicketKeys(server, material(root)), true],
    [
      'a new period',
      (listener: TlsEnd) => {
        now += TICKET_PERIOD;
        listener.renewTicketKeys(server, material(root));
      },
      false,
    ],
  ] as const)('resume after %s: as it should be', async (_name, change, resumes) => {
    const listener = listenerWith(TicketSecret.random(clock));
    await start(listener);
    const { session } = await visit();
    if (session === undefined) throw new Error('no session was offered');
    change(listener);
    expect((await visit(session)).reused).toBe(resumes);
    // In full or not, the next session is as good as any.
    expect((await visit((await visit()).session)).reused).toBe(true);
  });
});
