/** A revoked certificate stops authenticating at once. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { Agent } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, type ClientIdentity } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';

const key = makeKey();
const wire = onTheWire(simpleCsr(key));
let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start();
});
afterAll(() => estuary.stop());

async function revoke({ cert }: ClientIdentity): Promise<void> {
  const serial = new X509Certificate(cert).serialNumber;
  const { status } = await estuary.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'keyCompromise' });
  expect(status).toBe(200);
}

test('the next request on an open keep-alive connection is 401', async () => {
  const client = await estuary.enrolled(key);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<unknown>();
  agent.on('free', (socket) => sockets.add(socket));
  try {
    expect((await estuary.enroll(wire, { client, agent })).status).toBe(200);
    await revoke(client);
    const answer = await estuary.enroll(wire, { client, agent });
    expect(answer.status).toBe(401);
    expect(answer.text).toBe('client certificate revoked');
    expect(sockets.size, 'both went over one connection').toBe(1);
  } finally {
    agent.destroy();
  }
});

/** One simpleenroll on a connection; the status. */
async function enrollOn(socket: TLSSocket): Promise<number> {
  socket.write(
    'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs10\r\n' +
      `Content-Length: ${wire.length}\r\nConnection: close\r\n\r\n${wire}`,
  );
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  await once(socket, 'close');
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)('a request in a resumed %s session is 401', async (version) => {
  const client = await estuary.enrolled(key);
  const tls = { ca: estuary.root, ...client, minVersion: version, maxVersion: version };
  const port = estuary.server.port('est');
  const first = await openTls(port, tls);
  let session: Buffer | undefined;
  first.on('session', (ticket: Buffer) => (session = ticket));
  // TLS 1.2 has its ticket in the handshake, TLS 1.3 sends it afterwards.
  if (version === 'TLSv1.2') session = first.getSession();
  expect(await enrollOn(first)).toBe(200);
  await revoke(client);
  const second = await openTls(port, tls, session === undefined ? {} : { session });
  expect(second.isSessionReused()).toBe(true);
  expect(await enrollOn(second)).toBe(401);
});

test('without a certificate the holder can still enroll anew with a one-time password', async () => {
  const client = await estuary.enrolled(key);
  await revoke(client);
  const { token } = await estuary.otp();
  expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
});
