/** Which certificates make administrators, and when they stop. */
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeCa, makeClient, makeCrl, type Issuer } from '../support/certificates.ts';
import { runAny } from '../support/command.ts';
import { Estuary, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { NODE, SERVER, untilLogged } from '../support/server-process.ts';

let estuary: Estuary;
let ca: Issuer;
let admin: Issuer;

beforeAll(async () => {
  ca = await makeCa('CN=Administrators');
  admin = await makeClient('CN=Ada', ca, { serial: '0ada' });
  estuary = await Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'admin/own.pem'), encodePem('CERTIFICATE', ca.der));
      Object.assign(section(config, 'admin', 'tls'), { trust_anchors: 'admin/own.pem', mode: 'required_for_reenroll' });
    },
  });
});
afterAll(() => estuary.stop());

const asAdmin = async (headers: Record<string, string> = {}): Promise<number> => {
  const tls = { ca: estuary.root, cert: encodePem('CERTIFICATE', admin.der), key: pkcs8Pem(admin.keys) };
  const port = estuary.server.port('admin');
  return (await call({ port, path: '/admin/lockouts', method: 'GET', tls, headers })).status;
};

test('admin.tls.mode = "required_for_reenroll" means "optional", and a warning says so', async () => {
  expect(await asAdmin()).toBe(200);
  expect((await estuary.admin('GET', '/admin/lockouts')).status, 'a bearer token alone').toBe(200);
  const warning = await untilLogged(estuary.server, { key: 'admin.tls.mode' });
  expect(warning['msg']).toMatch(/means "optional"/);
});

test('a wrong bearer token with a valid certificate is 401', async () => {
  expect(await asAdmin({ Authorization: 'Bearer wrong' })).toBe(401);
  expect(await asAdmin({ Authorization: `Bearer ${estuary.adminToken}` })).toBe(200);
});

test('admin.tls.crl stops a revoked administrator at the next reload', async () => {
  writeFileSync(join(estuary.dir, 'admin/list.crl'), await makeCrl(ca, { revoked: ['0ada'] }));
  estuary.reconfigure((config) => {
    section(config, 'admin', 'tls')['crl'] = 'admin/list.crl';
  });
  estuary.server.signal('SIGHUP');
  await untilLogged(estuary.server, { msg: 'configuration reloaded' });
  expect(await asAdmin()).toBe(401);
  writeFileSync(join(estuary.dir, 'admin/list.crl'), await makeCrl(ca));
  estuary.server.signal('SIGHUP');
  await untilLogged(estuary.server, { msg: 'configuration reloaded' }, 2);
  expect(await asAdmin()).toBe(200);
});

test('anchors that make devices administrators are refused by a reload, by --check and at the start', async () => {
  cpSync(join(estuary.dir, 'ca/root.pem'), join(estuary.dir, 'admin/own.pem'));
  estuary.server.signal('SIGHUP');
  await untilLogged(estuary.server, { msg: 'reload failed; the old configuration stays in force' });
  expect(await asAdmin(), 'the old anchors').toBe(200);
  for (const args of [['--check'], []]) {
    const { code, output } = await runAny(NODE, [SERVER, '--config', join(estuary.dir, 'est.toml'), ...args]);
    expect(code).toBe(2);
    expect(output).toMatch(/est\.toml: admin\.tls\.trust_anchors: ".*" is a CA of this server or above one, /);
  }
});
