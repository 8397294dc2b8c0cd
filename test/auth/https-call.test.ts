/** One call to an identity provider: the connection is verified, and the answer is bounded; no redirect is followed. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { httpsCall } from '../../src/auth/https-call.ts';
import { IssuerKeys } from '../../src/auth/jwt/issuer-keys.ts';
import { HttpClient, TransportError } from '../../src/https-client.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { startProxy } from '../support/connect-proxy.ts';

const issuer = await makeCa('CN=Provider CA');
const ca = encodePem('CERTIFICATE', issuer.der);
let server: Server;
let url: string;
const authorizations: (string | undefined)[] = [];
beforeAll(async () => {
  const { der, keys } = await makeClient('CN=provider', issuer, { extensions: [subjectAltName(dns('localhost'))] });
  const key = keys.privateKey.export({ format: 'pem', type: 'pkcs8' });
  // The path names the status and the length of the answer.
  server = createServer({ cert: encodePem('CERTIFICATE', der), key }, (request, response) => {
    authorizations.push(request.headers.authorization);
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
  else expect(answer).toBeInstanceOf(TransportError);
});

test('the provider needs a certificate of its CA; without one in the configuration, of those of Node.js', async () => {
  const other = encodePem('CERTIFICATE', (await makeCa('CN=Other CA')).der);
  for (const wrong of [other, undefined])
    await expect(httpsCall(`${url}/200/1`, { ca: wrong })).rejects.toThrow(TransportError);
});

test('jwks_token_file is sent as a bearer token, and read again for each call', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const tokenFile = folder.file('token');
  const keys = new IssuerKeys({
    source: { url: `${url}/200/1`, ca: () => ca, tokenFile },
    retryAfter: 30,
    now: Date.now,
  });
  authorizations.length = 0;
  for (const token of ['first', 'second']) {
    writeFileSync(tokenFile, `${token}\n`);
    await expect(keys.probe()).rejects.toThrow(SyntaxError);
  }
  expect(authorizations).toEqual(['Bearer first', 'Bearer second']);
  writeFileSync(tokenFile, 'two words');
  await expect(keys.probe()).rejects.toThrow(`${tokenFile} contains no bearer token`);
  expect(authorizations).toHaveLength(2);
});

test('HTTPS_PROXY of the environment is used, unless NO_PROXY excepts the server', async () => {
  const proxy = await startProxy();
  onTestFinished(() => proxy.stop());
  vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${proxy.port}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await httpsCall(`${url}/200/1`, { ca })).toMatchObject({ status: 200 });
  const client = new HttpClient(url, { ca });
  onTestFinished(() => client.close());
  for (const freshConnection of [false, true])
    expect(
      await client.call({ method: 'GET', path: '/200/1', deadline: Date.now() + 60_000, freshConnection }),
    ).toMatchObject({ status: 200 });
  expect(proxy.targets).toEqual(Array(3).fill(new URL(url).host));
  await expect(httpsCall(`${url}/200/1`, { ca: undefined })).rejects.toThrow(TransportError);
  // As curl and Go read it.
  vi.stubEnv('HTTPS_PROXY', `127.0.0.1:${proxy.port}`);
  expect(await httpsCall(`${url}/200/1`, { ca })).toMatchObject({ status: 200 });
  expect(proxy.targets).toHaveLength(5);
  vi.stubEnv('NO_PROXY', 'localhost');
  expect(await httpsCall(`${url}/200/1`, { ca })).toMatchObject({ status: 200 });
  expect(proxy.targets).toHaveLength(5);
  vi.stubEnv('NO_PROXY', '');
  vi.stubEnv('HTTPS_PROXY', 'not a URL');
  await expect(httpsCall(`${url}/200/1`, { ca })).rejects.toThrow('HTTPS_PROXY is not an http:// or https:// URL');
  vi.stubEnv('HTTPS_PROXY', 'http://user:100%@proxy.example');
  await expect(httpsCall(`${url}/200/1`, { ca })).rejects.toThrow(/^HTTPS_PROXY has a user or password with a percent/);
  await expect(
    client.call({ method: 'GET', path: '/', deadline: Date.now() + 60_000, freshConnection: true }),
  ).rejects.toMatchObject({ mayHaveArrived: false });
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
