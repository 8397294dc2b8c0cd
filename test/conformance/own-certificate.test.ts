/** A server with a TLS certificate from one of its CAs (docs/guides/server-certificate.md). */
import { X509Certificate } from 'node:crypto';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { runAny } from '../support/command.ts';
import { Estuary, section } from '../support/estuary.ts';
import { NODE, SERVER } from '../support/server-process.ts';

let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure(config) {
      const tls = section(config, 'tls');
      delete tls['certificate'];
      delete tls['private_key'];
      tls['automatic'] = { ca: 'devices', names: ['localhost', '127.0.0.1'] };
    },
  });
});
afterAll(() => estuary.stop());

/** What a new connection to a listener is shown, checked against the root. */
function presented(listener: 'est' | 'admin'): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: '127.0.0.1',
      port: estuary.server.port(listener),
      ca: estuary.root,
      servername: 'localhost',
    });
    socket.on('error', reject);
    socket.on('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error('none'));
      else resolve(certificate);
    });
  });
}

/** What both listeners present. */
const presentedByAll = async (): Promise<X509Certificate[]> => [await presented('est'), await presented('admin')];

const serialOf = (certificate: X509Certificate): string => certificate.serialNumber.toLowerCase();

test('both listeners present it; it is in the store like any other', async () => {
  const shown = await presentedByAll();
  expect(shown).toHaveLength(2);
  const [serial, ...others] = new Set(shown.map(serialOf));
  expect(others).toEqual([]);
  const [first] = shown;
  const certificate = parseCertificate(first?.raw ?? Buffer.alloc(0));
  expect(certificate.extKeyUsage).toEqual([OID.serverAuth, OID.cmcRA]);
  const { json } = await estuary.admin('GET', `/admin/certificates/${serial}`);
  expect(json).toMatchObject({ ca: 'devices', status: 'valid', sans: ['DNS:localhost', 'IP:127.0.0.1'] });
});

test('another one takes its place without a dropped connection', async () => {
  const before = await presented('est');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  expect((await estuary.est('cacerts', { agent })).status).toBe(200);
  const revoked = await estuary.admin('POST', `/admin/certificates/${serialOf(before)}/revoke`, {
    reason: 'superseded',
  });
  expect(revoked.status).toBe(200);
  estuary.server.signal('SIGHUP');
  await expect.poll(async () => (await presentedByAll()).map(serialOf)).not.toContain(serialOf(before));
  expect(new Set((await presentedByAll()).map(serialOf)).size).toBe(1);
  expect((await estuary.est('cacerts', { agent })).status).toBe(200);
  const [socket] = Object.values(agent.freeSockets).flat();
  expect(socket !== undefined && 'getPeerX509Certificate' in socket).toBe(true);
  agent.destroy();
});

test('a restart goes on with it', async () => {
  const before = await presented('est');
  await estuary.server.stop();
  await estuary.restart();
  expect(serialOf(await presented('est'))).toBe(serialOf(before));
  const checked = await runAny(NODE, [SERVER, '--check', '--config', join(estuary.dir, 'est.toml')]);
  expect(checked.code).toBe(0);
});
