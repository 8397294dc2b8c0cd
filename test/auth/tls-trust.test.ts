import { once } from 'node:events';
import { connect, createServer, type TLSSocket } from 'node:tls';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { ClientTrust } from '../../src/auth/mtls/client-trust.ts';
import { validateClientCertificate } from '../../src/auth/mtls/mtls.ts';
import { acceptPartialChains } from '../../src/http/tls.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, makeCa, makeClient, subjectAltName, type Issuer } from '../support/certificates.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { clientTrust } from '../support/client-trust.ts';

const pem = (...certificates: readonly Issuer[]): string =>
  certificates.map(({ der }) => encodePem('CERTIFICATE', der)).join('');

const root = await makeCa('CN=Root');
const issuing = await makeCa('CN=Issuing', { issuer: root });
const stranger = await makeCa('CN=Stranger');
const own = await makeCa('CN=Own', { issuer: root });
const server = await makeClient('CN=localhost', root, { extensions: [subjectAltName(dns('localhost'))] });
// the anchor is an intermediate; "Own" helps only because its issuer is one too
const trust = await clientTrust({ trustAnchors: pem(issuing, root), intermediates: [own.der] });
const partial = await clientTrust({ trustAnchors: pem(issuing), intermediates: [own.der] });

/** What a server with `required` makes of a client, by its TLS stack and by ours. */
async function handshake(
  { tlsCertificates }: ClientTrust,
  client: Issuer,
  version: 'TLSv1.2' | 'TLSv1.3',
  session?: Buffer,
): Promise<{ refused: string | undefined; peer: Buffer | undefined; reused: boolean; session: Buffer | undefined }> {
  const seen: { refused: string | undefined; peer: Buffer | undefined; reused: boolean } = {
    refused: undefined,
    peer: undefined,
    reused: false,
  };
  // a new context would forget the sessions
  if (session === undefined) {
    listener.setSecureContext({ ...context, ca: [...tlsCertificates], minVersion: version, maxVersion: version });
    acceptPartialChains(listener);
  }
  listener.removeAllListeners('secureConnection').removeAllListeners('tlsClientError');
  const met = new Promise<void>((resolve) => {
    listener.once('secureConnection', (socket: TLSSocket) => {
      seen.peer = socket.getPeerX509Certificate()?.raw;
      seen.reused = socket.isSessionReused();
      socket.end('done');
      resolve();
    });
    listener.once('tlsClientError', (error) => {
      seen.refused = error.message;
      resolve();
    });
  });
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  const socket = connect({
    port: address.port,
    host: '127.0.0.1',
    servername: 'localhost',
    ca: pem(root),
    key: pkcs8Pem(client.keys),
    cert: pem(client),
    ...(session === undefined ? {} : { session }),
  });
  let ticket: Buffer | undefined;
  socket.on('session', (given) => (ticket = given));
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.resume();
  await Promise.all([met, closed]);
  return { ...seen, session: ticket };
}

const context = {
  key: pkcs8Pem(server.keys),
  cert: pem(server),
  requestCert: true,
  rejectUnauthorized: true,
  allowPartialTrustChain: true,
};
const listener = createServer(context);
beforeAll(async () => {
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
});
afterAll(() => {
  listener.close();
});

describe.each(['TLSv1.2', 'TLSv1.3'] as const)(
  '%s: the TLS stack accepts the same certificates as our validation',
  (version) => {
    test.each<[string, ClientTrust, Issuer, boolean]>([
      ['issued by the anchor, an intermediate', partial, issuing, true],
      ['issued by a helping intermediate with its root', trust, own, true],
      ['issued by a helping intermediate without its root', partial, own, false],
      ['issued by nobody known', trust, stranger, false],
    ])('%s', async (_, snapshot, issuer, accepted) => {
      const client = await makeClient('CN=client', issuer);
      const { refused, peer } = await handshake(snapshot, client, version);
      expect(refused === undefined, refused).toBe(accepted);
      const ours = validateClientCertificate(snapshot, client.der, [], Date.now());
      if (!accepted) return expect(ours).rejects.toThrow('certificate signed by unknown authority');
      expect(peer?.equals(client.der)).toBe(true);
      return expect(ours).resolves.toMatchObject({ path: { length: issuer === issuing ? 2 : 3 } });
    });

    test('a resumed session still shows its certificate', async () => {
      const client = await makeClient('CN=client', issuing);
      const first = await handshake(partial, client, version);
      const second = await handshake(partial, client, version, first.session ?? expect.fail('no session'));
      expect(first.reused).toBeFalsy();
      expect(second.reused).toBe(true);
      expect(second.peer?.equals(client.der)).toBe(true);
    });
  },
);
