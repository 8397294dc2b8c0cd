/** One call to an identity provider: the connection is verified, and the answer is bounded; no redirect is followed. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { httpsCall, UnreachableError } from '../../src/auth/https-call.ts';
import { IssuerKeys } from '../../src/auth/jwt/issuer-keys.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';

const issuer = await makeCa('CN=Provider CA');
const ca = encodePem('CERTIFICATE', issuer.der);
let server: Server;
let url: string;
beforeAll(async () => {
  const { der, keys } = await makeClient('CN=provider', issuer, { extensions: [subjectAltName(dns('localhost'))] });
  const key = keys.privateKey.export({ format: 'pem', type: 'pkcs8' });
  // The path names the status and the length of the answer.
  server = createServer({ cert: encodePem('CERTIFICATE', der), key }, (request, response) => {
    const [, status, length] = (request.url ?? '').split('/').map(Number);
    response.writeHead(status ?? 0, { Location: '/200/1' }).end('x'.repeat(length ?? 0));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `https://localhost:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

test.each([
  [200, 256 << 10, true],
  [200, (256 << 10) + 1, false],
  [302, 1, true],
  [499, 1, true],
  [500, 1, false],
  [503, 1, false],
])('status %i with %i octets: an answer: %s', async (status, length, isAnswer) => {
  const answer = await httpsCall(`${url}/${status}/${length}`, { ca }).catch((error: unknown) => error);
  if (isAnswer) expect(answer).toMatchObject({ status, body: { length } });
  else expect(answer).toBeInstanceOf(UnreachableError);
});

test('the provider needs a certificate of its CA; without one in the configuration, of those of Node.js', async () => {
  const other = encodePem('CERTIFICATE', (await makeCa('CN=Other CA')).der);
  for (const wrong of [other, undefined])
    await expect(httpsCall(`${url}/200/1`, { ca: wrong })).rejects.toThrow(UnreachableError);
});

test('the keys of a token issuer are not those that it redirects to', async () => {
  const keysAt = (path: string) =>
    new IssuerKeys({
      source: { url: url + path, ca: () => ca, tokenFile: undefined },
      retryAfter: 30,
      now: Date.now,
    }).probe();
  await expect(keysAt('/302/1')).rejects.toThrow('responded with status 302');
  await expect(keysAt('/200/1')).rejects.toThrow('JSON');
});
