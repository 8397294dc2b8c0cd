/** RFC 7030 §3.5, RFC 9266: a CSR with the channel binding of its connection, and with another one. */
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildCsr, challengePassword, estIdentityLinking, makeKey, onTheWire } from '../support/csr.ts';
import { Estuary, section } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { parseCsrAttrs } from '../../src/pki/pkcs10/csrattrs.ts';

let estuary: Estuary;
let token: string;
const key = makeKey();

beforeAll(async () => {
  estuary = await Estuary.start();
  ({ token } = await estuary.otp({ max_uses: 100 }));
});
afterAll(() => estuary.stop());

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
type Version = (typeof VERSIONS)[number];

const connect = (version: Version, session?: Buffer): Promise<TLSSocket> =>
  openTls(
    estuary.server.port('est'),
    { ca: estuary.root, minVersion: version, maxVersion: version },
    session === undefined ? {} : { session },
  );

/** The client's view of the binding: the first Finished message is its own in a full handshake, the server's in a resumed one. */
function bindingOf(socket: TLSSocket): string {
  const binding =
    socket.getProtocol() === 'TLSv1.3'
      ? socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
      : socket.isSessionReused()
        ? socket.getPeerFinished()
        : socket.getFinished();
  return binding?.toString('base64') ?? '';
}

/** The answer to an enrollment over this very connection. */
function enroll(socket: TLSSocket, binding: string | undefined): Promise<string> {
  return enrollWith(socket, binding === undefined ? [] : [challengePassword(binding)]);
}

function enrollWith(socket: TLSSocket, attributes: Buffer[]): Promise<string> {
  const csr = onTheWire(buildCsr(key, { attributes }));
  return new Promise((resolve) => {
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
    socket.on('close', () => resolve(answer));
    socket.write(
      'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\nConnection: close\r\n' +
        `Authorization: Basic ${Buffer.from(`d:${token}`).toString('base64')}\r\nContent-Length: ${csr.length}\r\n\r\n${csr}`,
    );
  });
}

/** Uses a connection and gives its session; TLS 1.3 hands it out after the handshake, TLS 1.2 within. */
async function used(socket: TLSSocket): Promise<Buffer> {
  const early = socket.getProtocol() === 'TLSv1.2' ? socket.getSession() : undefined;
  const later = new Promise<Buffer>((resolve) => socket.once('session', resolve));
  await enroll(socket, bindingOf(socket));
  return early ?? later;
}

describe.each(VERSIONS)('%s', (version) => {
  test('the binding of a full handshake is accepted', async () => {
    const socket = await connect(version);
    expect(await enroll(socket, bindingOf(socket))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('the binding of a resumed handshake is accepted', async () => {
    const socket = await connect(version, await used(await connect(version)));
    expect(socket.isSessionReused()).toBe(true);
    expect(await enroll(socket, bindingOf(socket))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('the binding of another connection is refused with 400', async () => {
    const first = await connect(version);
    const stolen = bindingOf(first);
    first.destroy();
    const answer = await enroll(await connect(version), stolen);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/is not the channel binding of this TLS connection/);
  });

  test('the binding of the session that was resumed is refused with 400', async () => {
    const first = await connect(version);
    const stolen = bindingOf(first);
    const resumed = await connect(version, await used(first));
    expect(resumed.isSessionReused()).toBe(true);
    expect(await enroll(resumed, stolen)).toMatch(/^HTTP\/1\.1 400 /);
  });

  test.each(['', 'secret', 'AAAA', '%%%'])(
    'a challengePassword that is no binding (%j) is refused with 400',
    async (text) => {
      expect(await enroll(await connect(version), text)).toMatch(/^HTTP\/1\.1 400 /);
    },
  );

  test('a CSR without one is accepted', async () => {
    expect(await enroll(await connect(version), undefined)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('est.require_pop_linking', () => {
  beforeAll(async () => {
    await estuary.server.stop();
    estuary.reconfigure((config) => (section(config, 'est')['require_pop_linking'] = true));
    await estuary.restart();
  });

  test('a CSR without the binding is refused with 400, one with it accepted', async () => {
    expect(await enroll(await connect('TLSv1.3'), undefined)).toMatch(/^HTTP\/1\.1 400 /);
    const socket = await connect('TLSv1.2');
    expect(await enroll(socket, bindingOf(socket))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('RFC 8951 §4, RFC 7894 §4: csrattrs lists challengePassword and estIdentityLinking', async () => {
    const answer = await estuary.est('csrattrs');
    expect(parseCsrAttrs(Buffer.from(answer.text, 'base64'))).toEqual([
      { oid: '1.2.840.113549.1.9.7' },
      { oid: '1.2.840.113549.1.9.16.2.58' },
    ]);
  });

  test.each(VERSIONS)('estIdentityLinking is the binding, and challengePassword free (%s)', async (version) => {
    const socket = await connect(version);
    const attributes = [challengePassword('for other uses'), estIdentityLinking(bindingOf(socket))];
    expect(await enrollWith(socket, attributes)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test.each<[string, (binding: string) => Buffer[]]>([
    ['another binding', () => [estIdentityLinking('AAAA')]],
    [
      'another binding next to a valid challengePassword',
      (right) => [estIdentityLinking('AAAA'), challengePassword(right)],
    ],
    ['more than 255 characters', () => [estIdentityLinking('A'.repeat(256))]],
    ['two of them', (right) => [estIdentityLinking(right), estIdentityLinking(right)]],
  ])('an estIdentityLinking with %s is refused with 400', async (_, attributes) => {
    const socket = await connect('TLSv1.3');
    expect(await enrollWith(socket, attributes(bindingOf(socket)))).toMatch(/^HTTP\/1\.1 400 /);
  });
});
