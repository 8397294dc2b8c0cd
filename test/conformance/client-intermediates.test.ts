/** Intermediates that a client sends in the handshake, on full and resumed handshakes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';

const wire = onTheWire(simpleCsr(makeKey()));
const pem = (issuer: Issuer): string => encodePem('CERTIFICATE', issuer.der);
const root = await makeCa('CN=Manufacturer Root');
const upper = await makeCa('CN=Manufacturer Upper', { issuer: root });
const lower = await makeCa('CN=Manufacturer Lower', { issuer: upper });

/** An IDevID with as much of its chain. */
async function device(name: string, ...chain: readonly Issuer[]): Promise<ClientIdentity> {
  const leaf = await makeClient(`CN=${name}`, lower);
  return { cert: [leaf, ...chain].map(pem).join(''), key: pkcs8Pem(leaf.keys) };
}

let estuary: Estuary;
const start = async (mode: string): Promise<void> => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      section(config, 'tls', 'client_auth')['mode'] = mode;
      section(config, 'tls', 'client_auth')['trust_anchors'] = 'anchors.pem';
      writeFileSync(join(dir, 'anchors.pem'), pem(root));
    },
  });
};

type Version = 'TLSv1.2' | 'TLSv1.3';

interface Visit {
  readonly status: number;
  readonly resumed: boolean;
  /** What the next connection resumes. */
  readonly session: Buffer;
  readonly client: ClientIdentity;
}

/** One connection with one enrollment. */
async function visit(client: ClientIdentity, version: Version, session?: Buffer): Promise<Visit> {
  const tls = { ca: estuary.root, ...client, minVersion: version, maxVersion: version };
  let latest: Buffer | undefined;
  const socket = await openTls(estuary.server.port('est'), tls, session === undefined ? {} : { session });
  socket.on('session', (ticket: Buffer) => (latest = ticket));
  const resumed = socket.isSessionReused();
  const status = await enrollOn(socket);
  const next = latest ?? socket.getSession();
  socket.destroy();
  if (next === undefined) throw new Error('no session');
  return { status, resumed, session: next, client };
}

function enrollOn(socket: TLSSocket): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setTimeout(60_000, () => socket.destroy(new Error('no answer within a minute')));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after: ${text}`)));
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1];
      const end = text.indexOf('\r\n\r\n');
      if (length === undefined || end < 0 || text.length < end + 4 + Number(length)) return;
      resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]));
    });
    socket.write(
      'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs10\r\n' +
        `Content-Length: ${wire.length}\r\n\r\n${wire}`,
    );
  });
}

describe.each(['optional', 'required'])('mode %s', (mode) => {
  beforeAll(() => start(mode));
  afterAll(() => estuary.stop());

  test.each<Version>(['TLSv1.2', 'TLSv1.3'])(
    '%s: a path through intermediates that the client sends, and on the sessions that resume',
    async (version) => {
      const first = await visit(await device(`with ${version}`, lower, upper), version);
      expect(first).toMatchObject({ status: 200, resumed: false });
      const next = await visit(first.client, version, first.session);
      expect(next).toMatchObject({ status: 200, resumed: true });
      expect(await visit(first.client, version, next.session)).toMatchObject({ status: 200, resumed: true });
    },
  );

  test('in another order, and with the root', async () => {
    expect((await visit(await device('another order', upper, root, lower), 'TLSv1.3')).status).toBe(200);
  });

  test('without them there is no path', async () => {
    const bare = await device('bare');
    if (mode === 'required') await expect(visit(bare, 'TLSv1.3')).rejects.toThrow();
    else expect((await visit(bare, 'TLSv1.3')).status).toBe(401);
  });
});
