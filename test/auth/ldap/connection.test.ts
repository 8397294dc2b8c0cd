/** One connection to an LDAP server: what counts as a rejection, and that it is never opened again (RFC 4511, RFC 4513). */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { CredentialRefused } from '../../../src/auth/guarded-attempts.ts';
import { DirectoryRefusal, LdapConnection } from '../../../src/auth/ldap/connection.ts';
import { Directory } from '../../../src/auth/ldap/directory.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { until } from '../../support/until.ts';
import { dns, ip, makeCa, makeClient, subjectAltName } from '../../support/certificates.ts';

const NAME = 'cn=device';
const serverAt = (url: string, ca?: string) => ({ url, starttls: false, ca, timeout: 60_000 });

/** RFC 4511 §4.2.2: the response to a short bind request, whose fifth octet is its messageID. */
const bindResponse = (request: Buffer, code = 0): Buffer =>
  Buffer.of(0x30, 12, 2, 1, request[4] ?? 0, 0x61, 7, 0x0a, 1, code, 4, 0, 4, 0);

async function listening(onConnection: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => onConnection(socket.on('error', () => undefined)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return `ldap://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('an empty name or password is rejected before a server is asked', async () => {
  const url = 'ldap://127.0.0.1:1';
  for (const [name, password] of [
    ['', 'x'],
    [NAME, ''],
  ] as const)
    await expect(LdapConnection.use(serverAt(url), (connection) => connection.bind(name, password))).rejects.toThrow(
      DirectoryRefusal,
    );
  const settings = { url: [url], starttls: false, search_filter: '', client_id_attribute: 'uid', attributes: [] };
  const directory = new Directory({
    settings: { ...settings, search_base: 'dc=example', bind: 'cn', timeout: 5 },
    ca: () => undefined,
    retryAfter: 30,
    now: Date.now,
  });
  for (const [name, password] of [
    ['', 'x'],
    ['device', ''],
  ] as const)
    await expect(directory.authenticate(name, password)).rejects.toThrow(CredentialRefused);
});

test.each([
  ['invalidCredentials', 49, true],
  ['a referral, which is not followed', 10, true],
  ['busy', 51, false],
  ['unavailable', 52, false],
])('RFC 4511 appendix A: %s (%i) is a rejected password: %s', async (_, code, isRefusal) => {
  const url = await listening((socket) =>
    socket.once('data', (request: Buffer) => socket.write(bindResponse(request, code))),
  );
  const error: unknown = await LdapConnection.use(serverAt(url), (connection) => connection.bind(NAME, 'x')).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Error);
  expect(error instanceof DirectoryRefusal).toBe(isRefusal);
  expect(String(error).includes('which is not followed')).toBe(code === 10);
});

test.each(['svc@corp.example', 'CORP\\\\svc'])('a name that is no DN is sent as it is: %s', async (name) => {
  let received = '';
  const url = await listening((socket) =>
    socket.once('data', (request: Buffer) => {
      received = request.toString();
      socket.write(bindResponse(request));
    }),
  );
  await LdapConnection.use(serverAt(url), (connection) => connection.bind(name, 'x'));
  expect(received).toContain(name);
});

test('a connection that is lost is not opened again, which would send the password without StartTLS', async () => {
  let connections = 0;
  const url = await listening((socket) => {
    connections += 1;
    socket.once('data', (request: Buffer) => socket.end(bindResponse(request)));
  });
  const again = await LdapConnection.use(serverAt(url), async (connection) => {
    await connection.bind(NAME, 'x');
    return until('the loss is noticed', () =>
      connection.bind(NAME, 'x').then(
        () => 'opened again',
        (error: unknown) => (/was lost/.test(String(error)) ? String(error) : undefined),
      ),
    );
  });
  expect(again).toBe('Error: the connection was lost');
  expect(connections).toBe(1);
});

test('LDAPS: the server learns the name in the URL (RFC 6066 §3), but not an address', async () => {
  const issuer = await makeCa('CN=Directory CA');
  const { der, keys } = await makeClient('CN=directory', issuer, {
    extensions: [subjectAltName(dns('localhost'), ip('127.0.0.1'))],
  });
  const names: unknown[] = [];
  const server = createTlsServer(
    { cert: encodePem('CERTIFICATE', der), key: keys.privateKey.export({ format: 'pem', type: 'pkcs8' }) },
    (socket) => {
      names.push(Reflect.get(socket, 'servername'));
      socket.once('data', (request: Buffer) => socket.write(bindResponse(request)));
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  const ca = encodePem('CERTIFICATE', issuer.der);
  for (const host of ['localhost', '127.0.0.1'])
    await LdapConnection.use(serverAt(`ldaps://${host}:${port}`, ca), (connection) => connection.bind(NAME, 'x'));
  expect(names).toEqual(['localhost', false]);
});
